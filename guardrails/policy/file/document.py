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
from guardrails.core.engine.chain import Rule
from guardrails.core.envelope.content import OPTIONAL
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard
from guardrails.core.guards.limits.budget import Budget, check_reserve
from guardrails.core.guards.limits.tool_budget import TOOLLESS
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import MinLen
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.plain_types import Checked, UnsureError, fitted, hints
from guardrails.core.values.units import FromText, Glob
from guardrails.core.values.usage import Price
from guardrails.policy.scope_names import SCOPE_GUARDS, SESSION_ONLY, scope_name

from .messages import known_code, known_numbers, with_codes
from .paths import place_models
from .yaml_position import plain


if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

    from .extends import Document

Maker = Any
"""`TypedDict`: of typing, or of typing_extensions, which is the one that pydantic takes until Python 3.12."""

_STRICT: Final = {"extra": "forbid", "strict": True}

RULE_GUARDS: Final = tuple(cls for cls in GUARDS if cls.name not in ("growth", "denials", "tool_filter"))
"""Guards that a `tools:` rule can set; the others are about the whole session."""


@lru_cache(maxsize=8)
def adapter(own: tuple[type[Guard], ...] = ()) -> "TypeAdapter[dict[str, Any]]":
    """
    pydantic's check of a whole document; *own* are a person's own guards, whose words it may choose too.
    """
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    return TypeAdapter(_document(own, TypedDict))


@lru_cache(maxsize=8)
def document_type(own: tuple[type[Guard], ...] = ()) -> Any:
    """
    The same as a type that is checked without pydantic, by `plain_types.fitted`.
    """
    return _document(own, typing.TypedDict)


def _document(own: tuple[type[Guard], ...], made: Maker) -> Any:
    budget: Any = Annotated[_typed(Budget, made), Checked(_reserving)]
    guards: dict[str, Any] = {cls.name: budget if cls is Budget else _typed(cls, made) for cls in GUARDS}
    price = _typed(Price, made)
    message = _dictionary("Message", {"message": str, "hint": str}, made)
    code = Annotated[str, Checked(partial(known_code, own=own))]
    messages = dict[code, Annotated[message, FromText(partial(known_numbers, own=own))]]  # type: ignore[valid-type]
    ruled = rule_guards(made)
    mode = Literal["enforce", "observe", "off"]
    rule = _dictionary(
        "ToolRule",
        {
            "match": Glob | Annotated[list[Glob], MinLen(1)],
            **declarations(),
            "mode": mode,
            "on_error": Literal["deny", "allow"],
            **ruled,
            # A word of both: what is declared of the tool, or how its failures are judged.
            "retryable": bool | ruled["retryable"],
        },
        made,
        required=frozenset({"match"}),
        doc="What is declared and overridden for the tools that match; first match wins, key by key.",
    )
    return _dictionary(
        "Policy",
        {
            "mode": mode,
            "on_error": Literal["deny", "allow"],
            "envelope": Literal["nested", "merged"],
            "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
            "prices": dict[str, price],  # type: ignore[valid-type]
            "messages": Annotated[messages, FromText(with_codes)],
            "tools": list[rule],  # type: ignore[valid-type]
            "scopes": scopes_type(made),
            **guards,
        },
        made,
        doc="A policy: one key for each guard of the chain, and what is known of the tools.",
    )


@lru_cache(maxsize=1)
def rule_adapter() -> "TypeAdapter[dict[str, Any]]":
    """
    pydantic's check of what a `Rule` written in code declares and sets; its parameters are checked with the tool's.
    """
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict

    return TypeAdapter(_rule_type(TypedDict))


@lru_cache(maxsize=1)
def rule_type() -> Any:
    """
    The same as a type that is checked without pydantic.
    """
    return _rule_type(typing.TypedDict)


def _rule_type(made: Maker) -> Any:
    declared = _dictionary("Declared", {**declarations(), "parameters": Any}, made)
    set_ = _dictionary("Guards", rule_guards(made), made)
    mode, on_error = Literal["enforce", "observe", "off"] | None, Literal["deny", "allow"] | None
    fields = {"match": tuple[Glob, ...], "declared": declared, "guards": set_, "mode": mode, "on_error": on_error}
    return _dictionary("Rule", fields, made)


def declarations() -> dict[str, Any]:
    """
    The type of each thing that a rule can declare of a tool.
    """
    types = hints(Tool)
    declared = {f.name: types[f.name] for f in dataclasses.fields(Tool) if f.name not in ("name", "description")}
    declared["parameters"] = Annotated[dict[str, Any], Checked(_defining)]
    declared["annotations"] = dict[str, Any]
    return declared


def rule_guards(made: Maker) -> dict[str, Any]:
    """
    The type of the settings of each guard that a rule can set.
    """
    guards = {cls.name: _typed(cls, made) for cls in RULE_GUARDS if cls is not Budget}
    return {"budget": _typed(Budget, made, name="ToolBudget", without=TOOLLESS), **guards}


def scopes_type(made: Maker) -> Any:
    """
    The type of the guards of each scope, by its name.
    """
    guards = {cls.name: _typed(cls, made) for cls in SCOPE_GUARDS if cls is not Budget}
    budget = _typed(Budget, made, name="ScopeBudget", without=SESSION_ONLY)
    scope = _dictionary(
        "Scope",
        {"budget": Annotated[budget, Checked(_reserving)], **guards},
        made,
        doc="Guards of all the sessions of one user, tenant or the like together.",
    )
    return dict[Annotated[str, Checked(scope_name)], scope]  # type: ignore[valid-type]


def _reserving(settings: dict[str, Any]) -> dict[str, Any]:
    check_reserve(settings.get("max_cost_usd"), settings.get("final_answer_reserve_usd", 0.0))
    return settings


def _defining(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments_of(parameters)
    except PolicyError as error:
        raise ValueError(str(error)) from None
    return parameters


def other_names() -> dict[str, dict[str, str]]:
    """
    Spellings of settings that a file may use beside the library's own, by guard.
    """
    return {cls.name: cls.aliases for cls in GUARDS if cls.aliases}


def load_document(source: str | PathLike[str], guards: Iterable[Guard] = ()) -> dict[str, Any]:
    """
    The arguments for `Policy` that a file, or a shipped policy, stands for; *guards* are added to those of the file.

    Raises PolicyError with every mistake.
    """
    from . import read, validate

    own = tuple(dict.fromkeys(type(guard) for guard in guards if isinstance(guard, Guard)))
    document = read(source, other_names=other_names())
    try:
        data = _plainly_right(document, document_type(own))
    except UnsureError:
        data = validate(document, adapter(own))
    if document.root is not None:
        place_models(data, document.root)
    return {"name": str(source), **settings(data)}


def _plainly_right(document: "Document", kind: Any) -> Any:
    """
    What `validate` makes of *document*. Raises UnsureError where pydantic has to be asked, as for what is wrong with it.
    """
    if document.mistakes or document.root is None:
        raise UnsureError
    for part in document.parts:
        if part is not document.root:
            fitted(kind, plain(part), written=True)
    return fitted(kind, document.data, written=True)


def settings(data: dict[str, Any]) -> dict[str, Any]:
    """
    A checked document as arguments for `Policy`.
    """
    made: dict[str, Any] = {"guards": [cls(**_plain(data[cls.name])) for cls in GUARDS if cls.name in data]}
    for key in ("mode", "on_error", "envelope", "fields", "messages"):
        if key in data:
            made[key] = data[key]
    made["prices"] = {model: Price(**price) for model, price in data.get("prices", {}).items()}
    made["scopes"] = {
        name: [cls(**_plain(own[cls.name])) for cls in SCOPE_GUARDS if cls.name in own]
        for name, own in data.get("scopes", {}).items()
    }
    made["rules"] = [_rule(entry) for entry in data.get("tools", [])]
    return made


def _rule(entry: dict[str, Any]) -> Rule:
    entry = dict(entry)
    match = entry.pop("match")
    guards = {cls.name: _plain(entry.pop(cls.name)) for cls in RULE_GUARDS if isinstance(entry.get(cls.name), dict)}
    mode, on_error = entry.pop("mode", None), entry.pop("on_error", None)
    patterns = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=patterns, declared=_plain(entry), guards=guards, mode=mode, on_error=on_error)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _typed(cls: type, made: Maker, *, name: str | None = None, without: tuple[str, ...] = ()) -> Any:
    types = hints(cls)
    fields = {f.name: types[f.name] for f in dataclasses.fields(cls) if f.name not in ("per_tool", *without)}
    required = frozenset(
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
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
