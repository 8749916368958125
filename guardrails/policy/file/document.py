"""
The types of a policy file, and of a rule written in code. They are checked by pydantic, and usable without it.

They are typed dictionaries made from the guards' own settings. A guard's field is so known to files, editors and checks
the moment it is written. Only the keys that are given are there.
"""

import dataclasses
import typing

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal

from guardrails.core.arguments import arguments_of
from guardrails.core.envelope.envelope import OPTIONAL
from guardrails.core.guards import GUARDS, Kinds, kinds_of
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.bounds import MinLen
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.plain_types import Checked, UnsureError, hints
from guardrails.core.values.units import FromText, Glob
from guardrails.core.values.usage import Price
from guardrails.policy.scope_names import scope_name

from .messages import known_code, known_numbers, with_codes


if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter


Maker = Any
"""`TypedDict`: of typing, or of typing_extensions, which is the one that pydantic takes until Python 3.12."""

# A person's own guard may have settings that only code can give.
_STRICT: Final = {"extra": "forbid", "strict": True, "arbitrary_types_allowed": True}
Place = Literal["policy", "tool", "scope"]
_FOR: Final[dict[Place, str]] = {"policy": "", "tool": "Tool", "scope": "Scope"}
"""What the name begins with of the settings that a guard may have there."""


@lru_cache(maxsize=8)
def adapter(own: tuple[type[Guard], ...] = ()) -> "TypeAdapter[dict[str, Any]]":
    """
    pydantic's check of a whole document; *own* are a person's own guards.
    """
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    return TypeAdapter(_document(own, TypedDict))


@lru_cache(maxsize=8)
def document_type(own: tuple[type[Guard], ...] = ()) -> Any:
    """
    Returns the same as a type that is checked without pydantic, by `plain_types.fitted`. Raises UnsureError if one of
    *own* is not the library's.
    """
    _library_only(own)
    return _document(own, typing.TypedDict)


def _document(own: tuple[type[Guard], ...], made: Maker) -> Any:
    kinds = kinds_of(own)
    guards = _settings_of(kinds, "policy", made)
    price = _typed(Price, made)
    message = _dictionary("Message", {"message": str, "hint": str}, made)
    code = Annotated[str, Checked(partial(known_code, own=own))]
    messages = dict[code, Annotated[message, FromText(partial(known_numbers, own=own))]]  # type: ignore[valid-type]
    declared, ruled = declarations(), _settings_of(kinds, "tool", made)
    # A word of both, such as `retryable`: what is declared of the tool, or how its failures are judged.
    both = {name: declared[name] | ruled[name] for name in declared.keys() & ruled.keys()}
    mode = Literal["enforce", "observe", "off"]
    rule = _dictionary(
        "ToolRule",
        {
            "match": Glob | Annotated[list[Glob], MinLen(1)],
            **declared,
            "mode": mode,
            "on_error": Literal["deny", "allow"],
            **ruled,
            **both,
        },
        made,
        required=frozenset({"match"}),
        doc="What is declared and overridden for the tools that match; first match wins, key by key.",
    )
    return _dictionary(
        "Policy",
        {
            "mode": mode,
            "stop": Annotated[str, MinLen(1)],
            "on_error": Literal["deny", "allow"],
            "by_name": bool,
            "envelope": Literal["nested", "merged", "quiet"],
            "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
            "prices": dict[str, price],  # type: ignore[valid-type]
            "messages": Annotated[messages, FromText(with_codes)],
            "tools": list[rule],  # type: ignore[valid-type]
            "scopes": scopes_type(kinds, made),
            **guards,
        },
        made,
        doc="A policy: one key for each guard of the chain, and what is known of the tools.",
    )


@lru_cache(maxsize=8)
def rule_adapter(kinds: Kinds = GUARDS) -> "TypeAdapter[dict[str, Any]]":
    """
    Returns pydantic's check of the declarations and settings of a `Rule` written in code, for guards of these *kinds*.
    Its parameters are checked with the tool's.
    """
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    return TypeAdapter(_rule_type(kinds, TypedDict))


@lru_cache(maxsize=8)
def rule_type(kinds: Kinds = GUARDS) -> Any:
    """
    Returns the same as a type that is checked without pydantic. Raises UnsureError if one of *kinds* is not the
    library's.
    """
    _library_only(kinds)
    return _rule_type(kinds, typing.TypedDict)


def _library_only(kinds: Iterable[type[Guard]]) -> None:
    # A person's own guard may tell pydantic more than its types.
    if not set(kinds) <= set(GUARDS):
        raise UnsureError


def _rule_type(kinds: Kinds, made: Maker) -> Any:
    declared = _dictionary("Declared", {**declarations(), "parameters": Any}, made)
    set_ = _dictionary("Guards", _settings_of(kinds, "tool", made), made)
    mode, on_error = Literal["enforce", "observe", "off"] | None, Literal["deny", "allow"] | None
    fields = {"match": tuple[Glob, ...], "declared": declared, "guards": set_, "mode": mode, "on_error": on_error}
    return _dictionary("Rule", fields, made)


def declarations() -> dict[str, Any]:
    """
    Returns the type of each thing that a rule can declare of a tool.
    """
    types = hints(Tool)
    declared = {f.name: types[f.name] for f in dataclasses.fields(Tool) if f.name not in ("name", "description")}
    declared["parameters"] = Annotated[dict[str, Any], Checked(_defining)]
    declared["annotations"] = dict[str, Any]
    declared |= dict.fromkeys(REPEATS, bool)
    return declared


def scopes_type(kinds: Kinds, made: Maker) -> Any:
    """
    Returns the type of the guards of each scope, by its name.
    """
    scope = _dictionary(
        "Scope",
        _settings_of(kinds, "scope", made),
        made,
        doc="Guards of all the sessions of one user, tenant or the like together.",
    )
    return dict[Annotated[str, Checked(scope_name)], scope]  # type: ignore[valid-type]


def _settings_of(kinds: Kinds, place: Place, made: Maker) -> dict[str, Any]:
    """
    The type of the settings that each of *kinds* may have in a *place*.
    """
    settings = {cls.name: _guarded(cls, made, place) for cls in kinds}
    return {name: kind for name, kind in settings.items() if kind is not None}


def _together(settings: dict[str, Any], *, cls: type[Guard]) -> dict[str, Any]:
    cls.check_settings(settings)
    return settings


def _defining(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments_of(parameters)
    except PolicyError as error:
        raise ValueError(str(error)) from None
    return parameters


def other_names(own: Iterable[type[Guard]] = ()) -> dict[str, dict[str, str]]:
    """
    Spellings of settings that a file may use beside those of the guards, by guard.
    """
    return {cls.name: cls.aliases for cls in kinds_of(own) if cls.aliases}


def _guarded(cls: type[Guard], made: Maker, place: Place) -> Any:
    """
    Returns the type of the settings of a guard in a *place*, None if it has no settings there.
    """
    allowed = {"policy": None, "tool": cls.tool_settings, "scope": cls.scope_settings}[place]
    if allowed == () or (place == "scope" and allowed is None and overrides(cls, "shape")):
        return None
    name = cls.__name__ if allowed is None else f"{_FOR[place]}{cls.__name__}"
    settings = _typed(cls, made, name=name, without=cls.unwritten, only=allowed)
    # Of a rule's settings the others are the policy's.
    whole = place != "tool" and overrides(cls, "check_settings")
    settings = Annotated[settings, Checked(partial(_together, cls=cls))] if whole else settings
    if cls.listed is None or place != "policy":
        return settings
    kind: Any = cls
    return settings | hints(kind)[cls.listed]


def _typed(
    cls: type,
    made: Maker,
    *,
    name: str | None = None,
    without: tuple[str, ...] = (),
    only: tuple[str, ...] | None = None,
) -> Any:
    types = hints(cls)
    fields = {
        f.name: types[f.name]
        for f in dataclasses.fields(cls)
        if f.name not in without and (only is None or f.name in only)
    }
    required = frozenset(
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name in fields
    )
    return _dictionary(name or cls.__name__, fields, made, required=required, doc=cls.__doc__)


def _dictionary(
    name: str,
    fields: dict[str, Any],
    made: Maker,
    *,
    required: frozenset[str] = frozenset(),
    doc: str | None = None,
) -> Any:
    dictionary = made(name, {k: kind if k in required else typing.NotRequired[kind] for k, kind in fields.items()})
    dictionary.__pydantic_config__ = _STRICT
    dictionary.__doc__ = doc
    return dictionary
