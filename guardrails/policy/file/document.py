"""
What a policy file may hold, and the `Policy` arguments it becomes.

The document is described to pydantic as typed dictionaries made from the guards' own settings, so that a guard's field
is known to files, editors and checks the moment it is written, and only the keys that a file gives are there.
"""

import dataclasses
import typing

from collections.abc import Iterable
from functools import lru_cache, partial
from os import PathLike
from typing import Annotated, Any, Final, Literal

from guardrails.core.arguments import arguments_of
from guardrails.core.engine.plan import Rule
from guardrails.core.envelope.content import OPTIONAL
from guardrails.core.guards import GUARDS, Kinds, kinds_of
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.units import Glob
from guardrails.core.values.usage import Price
from guardrails.policy.scope_names import scope_name

from .folder import place_files
from .messages import known_code, known_numbers, with_codes
from .yaml_position import Mistake, Node


if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

Place = Literal["policy", "tool", "scope"]
_FOR: Final[dict[Place, str]] = {"policy": "", "tool": "Tool", "scope": "Scope"}
"""What the name begins with of the settings that a guard may have there."""


@lru_cache(maxsize=8)
def adapter(own: tuple[type[Guard], ...] = ()) -> "TypeAdapter[dict[str, Any]]":
    """
    pydantic's check of a whole document; *own* are a person's own guards.
    """
    from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

    strict, kinds = _strict(), kinds_of(own)
    guards = _settings_of(kinds, "policy", strict)
    price = _typed(Price, strict)
    message = _dictionary("Message", {"message": str, "hint": str}, strict)
    code = Annotated[str, AfterValidator(partial(known_code, own=own))]
    messages = dict[code, Annotated[message, BeforeValidator(partial(known_numbers, own=own))]]  # type: ignore[valid-type]
    declared, ruled = declarations(), _settings_of(kinds, "tool", strict)
    # A word of both, such as `retryable`: what is declared of the tool, or how its failures are judged.
    both = {name: declared[name] | ruled[name] for name in declared.keys() & ruled.keys()}
    mode = Literal["enforce", "observe", "off"]
    rule = _dictionary(
        "ToolRule",
        {
            "match": Glob | Annotated[list[Glob], Field(min_length=1)],
            **declared,
            "mode": mode,
            "on_error": Literal["deny", "allow"],
            **ruled,
            **both,
        },
        strict,
        required=frozenset({"match"}),
        doc="What is declared and overridden for the tools that match; first match wins, key by key.",
    )
    document = _dictionary(
        "Policy",
        {
            "mode": mode,
            "on_error": Literal["deny", "allow"],
            "envelope": Literal["nested", "merged"],
            "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
            "prices": dict[str, price],  # type: ignore[valid-type]
            "messages": Annotated[messages, BeforeValidator(with_codes)],
            "tools": list[rule],  # type: ignore[valid-type]
            "scopes": scopes_type(kinds, strict),
            **guards,
        },
        strict,
        doc="A policy: one key for each guard of the chain, and what is known of the tools.",
    )
    return TypeAdapter(document)


@lru_cache(maxsize=8)
def rule_adapter(kinds: Kinds = GUARDS) -> "TypeAdapter[dict[str, Any]]":
    """
    pydantic's check of what a `Rule` written in code declares and sets, of guards of these *kinds*; its parameters are
    checked with the tool's.
    """
    from pydantic import TypeAdapter

    strict = _strict()
    declared = _dictionary("Declared", {**declarations(), "parameters": Any}, strict)
    set_ = _dictionary("Guards", _settings_of(kinds, "tool", strict), strict)
    mode, on_error = Literal["enforce", "observe", "off"] | None, Literal["deny", "allow"] | None
    fields = {"match": tuple[Glob, ...], "declared": declared, "guards": set_, "mode": mode, "on_error": on_error}
    return TypeAdapter(_dictionary("Rule", fields, strict))


def declarations() -> dict[str, Any]:
    """
    The type of each thing that a rule can declare of a tool.
    """
    from pydantic import AfterValidator

    hints = _hints(Tool)
    declared = {f.name: hints[f.name] for f in dataclasses.fields(Tool) if f.name not in ("name", "description")}
    declared["parameters"] = Annotated[dict[str, Any], AfterValidator(_defining)]
    declared["annotations"] = dict[str, Any]
    return declared


def scopes_type(kinds: Kinds, config: Any) -> Any:
    """
    The type of the guards of each scope, by its name.
    """
    from pydantic import AfterValidator

    scope = _dictionary(
        "Scope",
        _settings_of(kinds, "scope", config),
        config,
        doc="Guards of all the sessions of one user, tenant or the like together.",
    )
    return dict[Annotated[str, AfterValidator(scope_name)], scope]  # type: ignore[valid-type]


def _settings_of(kinds: Kinds, place: Place, config: Any) -> dict[str, Any]:
    """
    The type of the settings that each of *kinds* may have in a *place*.
    """
    made = {cls.name: _guarded(cls, config, place) for cls in kinds}
    return {name: kind for name, kind in made.items() if kind is not None}


def _together(settings: dict[str, Any], *, cls: type[Guard]) -> dict[str, Any]:
    cls.check_settings(settings)
    return settings


def _defining(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments_of(parameters)
    except PolicyError as error:
        raise ValueError(str(error)) from None
    return parameters


def _strict() -> Any:
    from pydantic import ConfigDict

    # A person's own guard may have settings that only code can give.
    return ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def other_names(own: Iterable[type[Guard]] = ()) -> dict[str, dict[str, str]]:
    """
    Spellings of settings that a file may use beside those of the guards, by guard.
    """
    return {cls.name: cls.aliases for cls in kinds_of(own) if cls.aliases}


def load_document(source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> dict[str, Any]:
    """
    The arguments for `Policy` that a file, or a shipped policy, stands for. *guards* are a person's own: those made are
    added, of classes the file says whether they stand, and how.

    Raises PolicyError with every mistake.
    """
    from . import read, validate

    given = list(guards)
    made = [guard for guard in given if isinstance(guard, Guard)]
    own = tuple(dict.fromkeys(guard if isinstance(guard, type) else type(guard) for guard in given if _is_guard(guard)))
    document = read(source, other_names=other_names(own))
    if document.root is not None:
        document.mistakes += _given_twice(document.root, made)
    data = validate(document, adapter(own))
    kinds = kinds_of(own)
    if document.root is not None:
        place_files(data, document.root, kinds)
    said = settings(data, kinds)
    said["guards"] += [guard for guard in given if not (isinstance(guard, type) and issubclass(guard, Guard))]
    return {"name": str(source), "kinds": own, **said}


def _is_guard(given: object) -> bool:
    return isinstance(given, Guard) or (isinstance(given, type) and issubclass(given, Guard))


def _given_twice(root: Node, guards: Iterable[Guard]) -> list[Mistake]:
    written = root.value if isinstance(root.value, dict) else {}
    return [
        Mistake(
            written[guard.name].key, f"`{guard.name}` is given in code too: give its class there, or leave this out"
        )
        for guard in guards
        if guard.name in written and type(guard) not in GUARDS
    ]


def settings(data: dict[str, Any], kinds: Kinds = GUARDS) -> dict[str, Any]:
    """
    A checked document as arguments for `Policy`.
    """
    made: dict[str, Any] = {"guards": [cls(**_plain(data[cls.name])) for cls in kinds if cls.name in data]}
    for key in ("mode", "on_error", "envelope", "fields", "messages"):
        if key in data:
            made[key] = data[key]
    made["prices"] = {model: Price(**price) for model, price in data.get("prices", {}).items()}
    made["scopes"] = {
        name: [cls(**_plain(own[cls.name])) for cls in kinds if cls.name in own]
        for name, own in data.get("scopes", {}).items()
    }
    made["rules"] = [_rule(entry, kinds) for entry in data.get("tools", [])]
    return made


def _rule(entry: dict[str, Any], kinds: Kinds) -> Rule:
    entry = dict(entry)
    match = entry.pop("match")
    guards = {cls.name: _plain(entry.pop(cls.name)) for cls in kinds if isinstance(entry.get(cls.name), dict)}
    mode, on_error = entry.pop("mode", None), entry.pop("on_error", None)
    patterns = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=patterns, declared=_plain(entry), guards=guards, mode=mode, on_error=on_error)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _guarded(cls: type[Guard], config: Any, place: Place) -> Any:
    """
    The type of the settings of a guard in a *place*; None where it has none.
    """
    from pydantic import AfterValidator

    allowed = {"policy": None, "tool": cls.tool_settings, "scope": cls.scope_settings}[place]
    if allowed == () or (place == "scope" and (overrides(cls, "shape") or overrides(cls, "shape_failure"))):
        return None
    name = cls.__name__ if allowed is None else f"{_FOR[place]}{cls.__name__}"
    made = _typed(cls, config, name=name, without=cls.unwritten, only=allowed)
    # Of a rule's settings the others are the policy's.
    whole = place != "tool" and overrides(cls, "check_settings")
    return Annotated[made, AfterValidator(partial(_together, cls=cls))] if whole else made


def _typed(
    cls: type,
    config: Any,
    *,
    name: str | None = None,
    without: tuple[str, ...] = (),
    only: tuple[str, ...] | None = None,
) -> Any:
    hints = _hints(cls)
    fields = {
        f.name: hints[f.name]
        for f in dataclasses.fields(cls)
        if f.name not in without and (only is None or f.name in only)
    }
    required = frozenset(
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name in fields
    )
    return _dictionary(name or cls.__name__, fields, config, required=required, doc=cls.__doc__)


def _dictionary(
    name: str,
    fields: dict[str, Any],
    config: Any,
    *,
    required: frozenset[str] = frozenset(),
    doc: str | None = None,
) -> Any:
    from typing_extensions import TypedDict

    make: Any = TypedDict  # made at run time, from the guards there are
    made = make(name, {k: kind if k in required else typing.NotRequired[kind] for k, kind in fields.items()})
    made.__pydantic_config__ = config
    made.__doc__ = doc
    return made


def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)
