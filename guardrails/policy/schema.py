"""
The types of a policy file and of a rule written in code, made from the guards' own settings.

A guard's field is known to files, editors and checks the moment it is written. A person's own guard can do there what one of ours can.
"""

import dataclasses
import typing

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, Final, Literal

from guardrails.core.arguments import arguments_of
from guardrails.core.envelope.envelope import FORMS, OPTIONAL
from guardrails.core.guards import GUARDS, Kinds
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.bounds import MinLen
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.plain_types import Checked, UnsureError, hints
from guardrails.core.values.units import Glob
from guardrails.core.values.usage import Price

from .check import scope_name


if typing.TYPE_CHECKING:
    from pydantic import TypeAdapter

VERSION: Final = 1
"""Of the file format; a file names the one it is written in."""
Place = Literal["", "Tool", "Scope"]
"""The place of a guard's settings, as their type's name begins: the policy, a rule, a scope."""
Mode = Literal["enforce", "observe", "off"]
OnError = Literal["deny", "allow"]
Schema = dict[str, Any]

# A person's own guard may have settings that only code can give.
_STRICT: Final = {"extra": "forbid", "strict": True, "arbitrary_types_allowed": True}
_OF_FILE: Final[Schema] = {
    "version": {"const": VERSION, "description": f"Version of the file format, {VERSION}; every file names it."},
    "extends": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": (
            "Policies this one builds on: names of policies that come with the library, or paths relative to this "
            "file. Maps merge, rules of `tools:` add up, other values replace, the later one wins."
        ),
    },
}


@lru_cache(maxsize=16)
def adapter(kinds: Kinds, *, rule: bool = False) -> "TypeAdapter[dict[str, Any]]":
    """
    Returns pydantic's check of a whole document, or of a *rule* written in code, with guards of these *kinds*.
    """
    from pydantic import TypeAdapter
    from typing_extensions import TypedDict  # the one that pydantic takes until Python 3.12

    return TypeAdapter((_rule if rule else _document)(kinds, TypedDict))


@lru_cache(maxsize=4)
def plain_type(kinds: Kinds, *, rule: bool = False) -> Any:
    """
    Returns the same as a type that is checked without pydantic, by `fitted`. Raises UnsureError if one of *kinds* is not the library's.
    """
    if not set(kinds) <= set(GUARDS):
        # A person's own guard may tell pydantic more than its types.
        raise UnsureError
    return (_rule if rule else _document)(kinds, typing.TypedDict)


def _document(kinds: Kinds, made: Any) -> Any:
    message = _keys("Message", {"message": str, "hint": str}, made)
    declared, ruled = _declarations(), _guards(kinds, "Tool", made)
    # A word of both, such as `retryable`: a declaration of the tool, or how its failures are judged.
    both = {name: declared[name] | ruled[name] for name in declared.keys() & ruled.keys()}
    globs = Glob | Annotated[list[Glob], MinLen(1)]
    doc = "What is declared and overridden for the tools that match; first match wins, key by key."
    fields = {"match": globs, **declared, "mode": Mode, "on_error": OnError, **ruled, **both}
    rule = _keys("ToolRule", fields, made, frozenset({"match"}), doc)
    doc = "Guards of all the sessions of one user, tenant or the like together."
    scope = _keys("Scope", _guards(kinds, "Scope", made), made, doc=doc)
    fields = {
        "mode": Mode,
        "stop": Annotated[str, MinLen(1)],
        "on_error": OnError,
        "by_name": bool,
        "envelope": Literal[FORMS],
        "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
        "prices": dict[str, _typed(Price, made)],  # type: ignore[misc]
        "messages": dict[str, message],  # type: ignore[valid-type]
        "tools": list[rule],  # type: ignore[valid-type]
        "scopes": dict[Annotated[str, Checked(scope_name)], scope],  # type: ignore[valid-type]
        **_guards(kinds, "", made),
    }
    return _keys(
        "Policy", fields, made, doc="A policy: one key for each guard of the chain, and what is known of the tools."
    )


def _rule(kinds: Kinds, made: Any) -> Any:
    declared = _keys("Declared", {**_declarations(), "parameters": Any}, made)
    guards = _keys("Guards", _guards(kinds, "Tool", made), made)
    fields = {
        "match": tuple[Glob, ...],
        "declared": declared,
        "guards": guards,
        "mode": Mode | None,
        "on_error": OnError | None,
    }
    return _keys("Rule", fields, made)


def _declarations() -> dict[str, Any]:
    types = hints(Tool)
    declared = {f.name: types[f.name] for f in dataclasses.fields(Tool) if f.name not in ("name", "description")}
    parameters = Annotated[dict[str, Any], Checked(_defining)]
    return declared | {"parameters": parameters, "annotations": dict[str, Any]} | dict.fromkeys(REPEATS, bool)


def _defining(parameters: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments_of(parameters)
    except PolicyError as error:
        raise ValueError(str(error)) from None
    return parameters


def _guards(kinds: Kinds, place: Place, made: Any) -> dict[str, Any]:
    """
    The type of the settings that each of *kinds* may have in a *place*.
    """
    found = {}
    for cls in kinds:
        allowed = {"": None, "Tool": cls.tool_settings, "Scope": cls.scope_settings}[place]
        if allowed == () or (place == "Scope" and allowed is None and overrides(cls, "shape")):
            continue
        kind: Any = cls
        settings = _typed(cls, made, cls.__name__ if allowed is None else f"{place}{cls.__name__}", allowed)
        # Of a rule's settings the others are the policy's.
        if place != "Tool" and overrides(cls, "check_settings"):
            settings = Annotated[settings, Checked(partial(_together, cls))]
        if cls.listed is not None and not place:
            settings |= hints(kind)[cls.listed]
        found[cls.name] = settings
    return found


def _together(cls: type[Guard], settings: dict[str, Any]) -> dict[str, Any]:
    cls.check_settings(settings)
    return settings


def _typed(cls: Any, made: Any, name: str = "", only: tuple[str, ...] | None = None) -> Any:
    types, fields = hints(cls), {f.name: f for f in dataclasses.fields(cls)}
    without = getattr(cls, "unwritten", ())
    chosen = {name: types[name] for name in fields if name not in without and (only is None or name in only)}
    missing = dataclasses.MISSING
    required = frozenset(n for n in chosen if fields[n].default is missing and fields[n].default_factory is missing)
    return _keys(name or cls.__name__, chosen, made, required, cls.__doc__)


def _keys(
    name: str, fields: Mapping[str, Any], made: Any, required: frozenset[str] = frozenset(), doc: str | None = None
) -> Any:
    keys = made(name, {key: kind if key in required else typing.NotRequired[kind] for key, kind in fields.items()})
    keys.__pydantic_config__, keys.__doc__ = _STRICT, doc
    return keys


def json_schema(kinds: Kinds) -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of a policy file.

    Only `version` is required at the top level: any other key may come from a policy it extends.
    """
    body = adapter(kinds).json_schema(mode="validation")
    if reference := body.pop("$ref", None):
        body = {**body["$defs"][reference.rpartition("/")[2]], "$defs": body["$defs"]}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": dialect, **body, "properties": {**_OF_FILE, **body["properties"]}, "required": ["version"]}
    for cls in kinds:
        for place in ("", "Tool", "Scope"):
            known = schema["$defs"].get(f"{place}{cls.__name__}", {}).get("properties", {})
            known |= {other: known[name] for other, name in cls.aliases.items() if name in known}
    return schema
