"""
The settings of a policy: the types of a file and of what code gives, made from the guards' own, and the rules of both.

Promises, each with a test:

* A guard's field is known to files, editors and checks the moment it is written. A person's own guard can do there what ours can.
* Everything that is wrong is told at once, each with the name of the setting. A list stands for a tuple, `30s` for seconds.
* A code that no guard says, and a `$number` that its message does not have, are mistakes. A guard that does not declare its codes may have
  any that begin with its name.
* A scope has guards that count: no setting there is a session's own.
"""

import dataclasses

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from string import Template
from typing import Annotated, Any, Final, Literal, Union

from guardrails.core.arguments import arguments_of
from guardrails.core.chain import Chain, Rule
from guardrails.core.envelope.envelope import FORMS, OPTIONAL
from guardrails.core.guards import GUARDS, Kinds, place_of
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.guards.settings import respelt
from guardrails.core.guards.tool_filter import Held
from guardrails.core.refusals import CODES as ENGINE_CODES
from guardrails.core.tools.tool import REPEATS, Tool
from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.schema import (
    Checked,
    MapType,
    MinLen,
    Schema,
    fit,
    hints,
    json_schema,
    map_type,
    suggestion,
)
from guardrails.core.values.types import Mode
from guardrails.core.values.units import Glob
from guardrails.core.values.usage import Price


VERSION: Final = 1
"""Of the file format; a file names the one it is written in."""
Own = Iterable[type[Guard] | Guard]
Numbers = tuple[str, ...] | None
"""Names of the numbers behind a message; None: not known."""
Messages = Mapping[str, Mapping[str, str]]
Place = Literal["", "Tool", "Scope"]
"""The place of a guard's settings, as their type's name begins: the policy, a rule, a scope."""
OnError = Literal["deny", "allow"]

_SCOPE: Final = pattern(r"[a-z][a-z0-9_]{0,31}")
_TAKEN: Final = frozenset({"session", "scopes", "store", "tools", *(cls.name for cls in GUARDS)})
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


# Types


SETTINGS: Final[Mapping[str, Any]] = {
    "mode": Mode,
    "stop": Annotated[str, MinLen(1)],
    "on_error": OnError,
    "by_name": bool,
    "envelope": Literal[FORMS],
    "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
    "prices": dict[str, Price],
    "messages": dict[str, MapType("Message", {"message": str, "hint": str})],  # type: ignore[misc]
}
"""Those of a policy beside its guards, scopes and tools."""


@cache
def file_type(kinds: Kinds) -> MapType:
    """
    Returns the type of a policy file that may have guards of these *kinds*: it makes the arguments of `Policy`.
    """
    declared, ruled = _declared(), _guards(kinds, "Tool")
    # A word of both, such as `retryable`: a declaration of the tool, or how its failures are judged.
    both = {name: Union[declared[name], ruled[name]] for name in declared.keys() & ruled.keys()}  # noqa: UP007
    globs = Glob | Annotated[list[Glob], MinLen(1)]
    doc = "What is declared and overridden for the tools that match; first match wins, key by key."
    types = {"match": globs, **declared, "mode": Mode, "on_error": OnError, **ruled, **both}
    rule = MapType("ToolRule", types, frozenset({"match"}), doc, make=partial(_rule, frozenset(ruled)))
    doc = "Guards of all the sessions of one user, tenant or the like together."
    scope = MapType("Scope", _guards(kinds, "Scope"), doc=doc, make=lambda **guards: list(guards.values()))
    types = {"tools": list[rule], "scopes": dict[Annotated[str, Checked(scope_name)], scope], **_guards(kinds, "")}  # type: ignore[valid-type]
    doc = "A policy: one key for each guard of the chain, and what is known of the tools."
    return MapType(
        "Policy", {**SETTINGS, **types}, doc=doc, make=partial(_arguments, frozenset(cls.name for cls in kinds))
    )


@cache
def rule_type(kinds: Kinds) -> MapType:
    """
    Returns the type of the fields of a `Rule` in code.
    """
    declared = MapType("Declared", {**_declared(), "parameters": Annotated[Any, Checked(_defining)]})
    types = {"match": tuple[Glob, ...], "declared": declared, "guards": MapType("Guards", _guards(kinds, "Tool"))}
    return MapType("Rule", {**types, "mode": Mode | None, "on_error": OnError | None}, make=Rule)


def file_schema(kinds: Kinds) -> Schema:
    """
    Returns the JSON Schema (draft 2020-12) of a policy file.

    Only `version` is required at the top level: any other key may come from a policy it extends.
    """
    named: dict[str, Schema] = {}
    json_schema(file_type(kinds), named)
    body = named.pop("Policy")
    dialect = "https://json-schema.org/draft/2020-12/schema"
    properties = {**_OF_FILE, **body["properties"]}
    return {"$schema": dialect, "$defs": named, **body, "properties": properties, "required": ["version"]}


def _declared() -> dict[str, Any]:
    types = hints(Tool)
    declared = {f.name: types[f.name] for f in dataclasses.fields(Tool) if f.name not in ("name", "description")}
    parameters = Annotated[dict[str, Any], Checked(_defining)]
    return declared | {"parameters": parameters, "annotations": dict[str, Any]} | dict.fromkeys(REPEATS, bool)


def _defining(parameters: Any) -> Any:
    try:
        if isinstance(parameters, Mapping):
            arguments_of(parameters)
    except PolicyError as error:
        raise ValueError(str(error)) from None
    return parameters


def _guards(kinds: Kinds, place: Place) -> dict[str, Any]:
    """
    The types of the settings that each of *kinds* may have in a *place*. They make guards; in a rule, whose others are the policy's, maps.
    """
    found: dict[str, Any] = {}
    for cls in kinds:
        kind: Any = cls
        allowed = {"": None, "Tool": cls.tool_settings, "Scope": cls.scope_settings}[place]
        if allowed == () or (place == "Scope" and not overrides(cls, "edges")):
            continue
        whole = map_type(kind)
        types = {n: t for n, t in whole.types.items() if n not in cls.unwritten and (allowed is None or n in allowed)}
        aliases = {other: name for other, name in cls.aliases.items() if name in types}
        name = cls.__name__ if allowed is None else f"{place}{cls.__name__}"
        made = dataclasses.replace(
            whole, name=name, types=types, required=whole.required & types.keys(), aliases=aliases
        )
        made.make = dict if place == "Tool" else partial(_guard, cls)
        found[cls.name] = made
        if cls.listed is not None and not place:
            one = whole.types[cls.listed]
            found[cls.name] = Union[made, Annotated[one, Checked(partial(_listed, cls))]]  # noqa: UP007
    return found


def _listed(cls: type[Guard], listed: Any) -> Guard:
    return _guard(cls, **{str(cls.listed): listed})


def _values(made: Any) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}


def _guard(cls: type[Guard], **settings: Any) -> Guard:
    made = cls(**settings)
    made.check_settings(_values(made))
    return made


def _rule(ruled: frozenset[str], *, match: Any, mode: Any = None, on_error: Any = None, **entry: Any) -> Rule:
    guards = {name: entry.pop(name) for name in ruled if isinstance(entry.get(name), dict)}
    globs = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=globs, declared=entry, guards=guards, mode=mode, on_error=on_error)


def _arguments(names: frozenset[str], *, tools: Any = (), **said: Any) -> dict[str, Any]:
    guards = [said.pop(name) for name in [*said] if name in names]
    return {"guards": guards, "rules": list(tools), **said}


# Guards, tools, rules and prices in code


def told(where: str, kind: Any, value: Any, mistakes: list[str]) -> list[Any]:
    """
    Returns *value* as the type *kind* makes it, in a list; an empty list if it is not valid: its faults go into *mistakes*.
    """
    try:
        made, faults = fit(kind, value)
    except NameError as error:
        mistakes.append(f"{where}: its settings cannot be checked: {error}")
        return []
    for fault in faults:
        path = fault.path[:-1] if fault.kind == "unknown" else fault.path
        mistakes.append(
            f"{'.'.join(str(part) for part in (where, *path) if part != '')}: {fault.sentence(f'`{fault.value!r:.80}`')}"
        )
    return [] if faults else [made]


def checked_settings(said: Mapping[str, Any], mistakes: list[str]) -> dict[str, Any]:
    """
    Returns the settings of a policy that are said, None being none. Nothing is returned if one is not valid: the faults go into *mistakes*.
    """
    given = {key: value for key, value in said.items() if value is not None}
    return next(iter(told("", MapType("Policy", {**SETTINGS}), given, mistakes)), {})


def checked_guards(guards: Iterable[Guard], mistakes: list[str]) -> list[Guard]:
    """
    Returns the guards that are valid. Faults of the others go into *mistakes*.
    """
    valid: list[Guard] = []
    for guard in guards:
        if not isinstance(guard, Guard):
            shown = getattr(guard, "__name__", None) or type(guard).__name__
            hint = "; call it: it is a class" if isinstance(guard, type) else ""
            mistakes.append(f"`{shown}` is no guard{hint}")
        elif any(guard.name == other.name for other in valid):
            mistakes.append(f"`{guard.name}` is given twice")
        else:
            found = told(guard.name, type(guard), guard, mistakes)
            valid += found
            mistakes += wrong_together(found)
    return valid


def wrong_together(guards: Iterable[Guard]) -> list[str]:
    """
    Returns the mistakes in settings of *guards* that are each valid by themselves.
    """
    found = []
    for guard in guards:
        try:
            guard.check_settings(_values(guard))
        except ValueError as error:
            found.append(f"{guard.name}: {error}")
    return found


def unprepared(guards: Iterable[Guard]) -> list[str]:
    """
    Returns a problem for each file that *guards* name in their settings and could not read.
    """
    found = {}
    for guard in guards:
        try:
            guard.prepare()
        except GuardrailsError as error:
            found[f"{guard.name}: {error}"] = guard
    return list(found)


def checked_tools(tools: Iterable[Tool | Callable[..., Any]], mistakes: list[str]) -> list[Tool]:
    """
    Returns the tools that are valid. Faults of the others go into *mistakes*.
    """
    valid: list[Tool] = []
    for given in tools:
        if not isinstance(given, Tool) and not (callable(given) and hasattr(given, "__name__")):
            mistakes.append(f"`{given!r:.80}` is no tool: a tool is a `Tool` or a function")
            continue
        tool = given if isinstance(given, Tool) else Tool.of(given)
        if any(tool.name == other.name for other in valid):
            mistakes.append(f"the tool `{tool.name}` is given twice")
        else:
            valid += told(f"tools.{tool.name}", Tool, tool, mistakes)
            told(f"tools.{tool.name}.parameters", Annotated[Any, Checked(_defining)], tool.parameters, mistakes)
    return valid


def checked_rules(rules: Iterable[Rule], mistakes: list[str], kinds: Kinds = GUARDS) -> list[Rule]:
    """
    Returns the rules that are valid. Faults of the others go into *mistakes*. *kinds* are the guards that they may set.
    """
    valid: list[Rule] = []
    aliases = {cls.name: cls.aliases for cls in kinds}
    for place, rule in enumerate(rules):
        where = f"rules.{place}"
        if not isinstance(rule, Rule):
            hint = "write `Rule(match=..., declared={...}, guards={...})`"
            mistakes.append(f"{where}: `{rule!r:.80}` is no rule: {hint}")
            continue
        given = _values(rule)
        found = [] if rule.match else [f"{where}.match: a rule matches one glob of tool names at least"]
        for name, own in rule.guards.items() if isinstance(rule.guards, Mapping) else ():
            if isinstance(own, Mapping):
                named, twice = respelt(own, aliases.get(name, {}))
                found += [f"{where}.{name}: {one}" for one in twice]
                given["guards"] = {**given["guards"], name: named}
        if isinstance(rule.match, (set, frozenset)):
            given["match"] = tuple(rule.match)
        made = told(where, rule_type(kinds), given, found)
        valid += [] if found else made
        mistakes += found
    return valid


# Words of a policy's own


def codes_of(guards: Own) -> dict[str, Numbers]:
    """
    Returns the codes of *guards*, their own failures included, each with the numbers that a wording may use.
    """
    return {code: n for guard in guards for code, n in {**(guard.codes or {}), f"{guard.name}.error": ()}.items()}


CODES: Final[Mapping[str, Numbers]] = codes_of((*GUARDS, Held)) | ENGINE_CODES
"""Those of the library's guards."""


def wrong_code(code: str, own: Own = ()) -> str:
    """
    Returns the mistake in *code*, in a policy whose own guards are *own*; "" if the code may be worded.
    """
    known, free = {*CODES, *codes_of(own)}, [f"{guard.name}." for guard in own if guard.codes is None]
    if code in known or code.startswith(tuple(free)):
        return ""
    return f"no guard says `{code}`{suggestion(code, sorted(known))}"


def wrong_numbers(code: str, words: object, own: Own = ()) -> list[str]:
    """
    Returns the `$placeholders` of *words* that have no value in a message of *code*.
    """
    numbers = {**CODES, **codes_of(own)}.get(code)
    if numbers is None or not isinstance(words, Mapping):
        return []
    texts = [text for text in words.values() if isinstance(text, str)]
    used = dict.fromkeys(name for text in texts for name in Template(text).get_identifiers())
    there = ", ".join(f"`${name}`" for name in numbers) or "none"
    return [
        f"`${name}` stands for nothing here{suggestion(name, numbers)}; there are: {there}"
        for name in used
        if name not in numbers
    ]


def wrong_words(messages: Messages, own: Own, scopes: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    """
    Returns (code, mistake, whether the code is wrong) for the mistakes in a policy's own wording of the messages of the library and of its
    *own* guards; codes of *scopes* begin with the scope's name.
    """
    guards = [guard for guard in own if isinstance(guard, (Guard, type)) and type(guard) not in GUARDS]
    for written, words in messages.items():
        scope, _, rest = str(written).partition(".")
        code = rest if scope in scopes else written
        wrong = wrong_code(code, guards)
        if wrong:
            yield written, wrong.replace(code, written, 1), True
        elif found := wrong_numbers(code, words, guards):
            yield written, "; ".join(found), False


# Scopes


def scope_name(name: str) -> str:
    """
    Returns *name* if it may name a scope: codes begin with it. Raises ValueError.
    """
    if not isinstance(name, str) or not _SCOPE.fullmatch(name):
        rule = "a letter, then letters, digits and `_`, 32 at most"
        raise ValueError(f"a scope is named like `user`: {rule}, not `{name}`")
    if name in _TAKEN:
        raise ValueError(f"a scope cannot be called `{name}`: codes begin with it, and `{name}` begins others already")
    return name


def scope_chains(
    scopes: Mapping[str, Iterable[Guard]],
    mistakes: list[str],
    *,
    rules: Iterable[Rule],
    messages: Mapping[str, Messages],
    **settings: Any,
) -> dict[str, Chain]:
    """
    Returns the guards of each scope, ready to decide. Their faults go into *mistakes*.

    Only those of a policy's *rules* hold that set the mode in which a tool is guarded. The *messages* are by scope.
    """
    modes = [dataclasses.replace(rule, declared={}, guards={}) for rule in rules if rule.mode or rule.on_error]
    made = {}
    for name, guards in sorted(scopes.items(), key=lambda scope: str(scope[0])):
        found: list[str] = []
        try:
            scope_name(name)
        except ValueError as error:
            found.append(str(error))
        own = checked_guards(guards, found)
        found += [wrong for guard in own for wrong in _session_only(guard)]
        if not own and not found:
            found.append("a scope without guards limits nothing")
        mistakes += [f"scopes.{name}: {mistake}" for mistake in found]
        made[name] = Chain(sorted(own, key=place_of), rules=modes, messages=messages.get(name), **settings)
    return made


def _session_only(guard: Guard) -> list[str]:
    if not overrides(guard, "edges"):
        known = ", ".join(f"`{cls.name}`" for cls in GUARDS if overrides(cls, "edges"))
        return [
            f"`{guard.name}` goes by more than amounts, and a scope holds amounts alone; a scope may have {known}, and guards that define `edges`"
        ]
    own = set() if guard.scope_settings is None else guard.settings().keys() - guard.scope_settings
    return [f"{guard.name}.{one}: it is a session's own; set it in the policy's `{guard.name}`" for one in sorted(own)]


def split_messages(
    messages: Messages, scopes: Iterable[str]
) -> tuple[dict[str, Mapping[str, str]], dict[str, Messages]]:
    """
    Returns the wordings of a policy's own codes, and those of each scope's codes (`user.budget.max_calls`) without the scope's name.
    """
    own: dict[str, Mapping[str, str]] = {}
    shared: dict[str, dict[str, Mapping[str, str]]] = {name: {} for name in scopes}
    for code, words in messages.items():
        scope, _, rest = str(code).partition(".")
        if scope in shared:
            shared[scope][rest] = words
        else:
            own[code] = words
    return own, {scope: words for scope, words in shared.items() if words}
