"""
The settings of a policy: the types of a file and of what code gives, made from the guards' own, and the rules of both.

Promises, each with a test:

* A guard's field is known to files, editors and checks the moment it is written. A person's own guard can do there what ours can.
* Everything that is wrong is told at once, each with the name of the setting. A list stands for a tuple, `30s` for seconds.
* A code that no guard says, and a `$number` that no message has, are mistakes. A guard that does not declare its codes may have any that begin with its name.
* A scope has guards that count: no setting there is a session's own.
"""

import dataclasses
import re

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Annotated, Any, Final, Literal, TypedDict, Union

from guardrails.core.chain import Chain, Rule
from guardrails.core.envelope import FORMS, OPTIONAL
from guardrails.core.guards import GUARDS, Kinds, kinds_of, place_of
from guardrails.core.guards.base import Guard, overrides, respelt
from guardrails.core.guards.rules import SESSION, Rules
from guardrails.core.guards.tool_filter import Held
from guardrails.core.refusals import CODES as ENGINE_CODES
from guardrails.core.refusals import ERROR
from guardrails.core.tool import REPEATS, Tool
from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.schema import Checked, MapType, MinLen, fit, json_schema, map_type, quoted, suggestion
from guardrails.core.values.types import Mode
from guardrails.core.values.units import Glob
from guardrails.core.values.usage import Price


PARTS: Final = {
    **{name: ("envelope", name) for name in ("fields", "summary", "truncate")},
    "loop_score": ("loops", "score"),
    "retry_budget": ("retryable", "budget"),
    "envelope": ("envelope", "form"),
}
"""Settings that a file has as a part of another key: `envelope: {form: quiet, fields: [...]}`."""
VERSION: Final = 1
"""Of the file format; a file names the one it is written in."""
Numbers = tuple[str, ...] | None
"""Names of the numbers behind a message; None: not known."""
OnError = Literal["deny", "allow"]

_MATCH: Final = Glob | Annotated[tuple[Glob, ...], MinLen(1)]
_TAKEN: Final = frozenset({"session", "scopes", "store", "tools", *(cls.name for cls in GUARDS)})


def codes_of(guards: Iterable[type[Guard]]) -> dict[str, Numbers]:
    """
    Returns the codes of *guards*, each with the numbers that a wording may use.
    """
    return {code: numbers for guard in guards for code, numbers in (guard.codes or {}).items()}


CODES: Final[Mapping[str, Numbers]] = codes_of((*GUARDS, Held)) | ENGINE_CODES
"""Those of the library's guards."""


# Types


class Head(TypedDict, total=False):
    """
    The keys that each file has for itself.
    """

    version: Literal[1]
    """Version of the file format, 1; every file names it."""
    extends: str | list[str]
    """Policies this one builds on: names of policies that come with the library, or paths relative to this file. Maps merge, rules of
    `tools:` add up, other values replace, the later one wins."""


SETTINGS: Final[Mapping[str, Any]] = {
    "mode": Mode,
    "stop": Annotated[str, MinLen(1)],
    "on_error": OnError,
    "by_name": bool,
    "envelope": Literal[FORMS],
    "fields": list[Literal[tuple(sorted(OPTIONAL))]],  # type: ignore[misc]
    "prices": dict[str, Price],
}
"""Those of a policy beside its guards, scopes, tools and messages."""


@cache
def policy_type(kinds: Kinds) -> MapType:
    """
    Returns the type of a policy file that may have guards of these *kinds*. It makes the arguments of `Policy`.
    """
    guards, declared, ruled = _guards(kinds, ""), _declared(), _guards(kinds, "Tool")
    # A word of both, such as `retryable`: a declaration of the tool, or how its failures are judged.
    both = {name: Union[declared[name], ruled[name]] for name in declared.keys() & ruled.keys()}  # noqa: UP007
    rule = {"match": _MATCH, **declared, "mode": Mode, "on_error": OnError, **ruled, **both}
    doc = "What is declared and overridden for the tools that match; first match wins, key by key."
    only = "; `guardrails policy schema` shows all keys"
    tool = MapType("ToolRule", rule, frozenset({"match"}), doc, make=partial(_rule, ruled), only=only)
    doc = "Guards of all the sessions of one user, tenant or the like together."
    only = ". A scope holds amounts alone, and guards that go by more have no place in it"
    scope = MapType("Scope", _guards(kinds, "Scope"), doc=doc, make=_scope, only=only)
    scopes = dict[Annotated[str, Checked(scope_name)], scope]  # type: ignore[valid-type]
    own = {"messages": _messages([cls for cls in kinds if cls not in GUARDS]), "scopes": scopes}
    doc = "A policy: one key for each guard of the chain, and what is known of the tools."
    only = ": a guard is a key by its own name, `budget: {max_calls: 20}`, and `guardrails policy schema` shows all"
    types = {**map_type(Head).types, **SETTINGS, **own, **guards, "tools": list[tool]}  # type: ignore[valid-type]
    return MapType("Policy", types, doc=doc, make=partial(_arguments, guards), of=Head, only=only)


@cache
def _rules_type(kinds: Kinds) -> Any:
    # What a file calls tools, as code writes it.
    parts = {"declared": MapType("Declared", _declared()), "guards": MapType("Ruled", _guards(kinds, "Tool"))}
    rule = {"match": _MATCH, **parts, "mode": Mode | None, "on_error": OnError | None}
    return list[MapType("Rule", rule, make=Rule, of=Rule)]  # type: ignore[misc]


def _declared() -> dict[str, Any]:
    types = map_type(Tool).types | {"annotations": dict[str, Any], **dict.fromkeys(REPEATS, bool)}
    return {name: kind for name, kind in types.items() if name not in ("name", "description")}


def _messages(own: list[type[Guard]]) -> Any:
    codes, free = {**CODES, **codes_of(own)}, tuple(f"{cls.name}." for cls in own if cls.codes is None)
    # Of the numbers of a guard that declares no codes nothing is known.
    word: Any = str if free else Annotated[str, Checked(partial(_word, codes))]
    message: Any = MapType("Message", {"message": word, "hint": word})
    return dict[Annotated[str, Checked(partial(_code, codes, free))], message]


def file_schema(own: Iterable[type[Guard]]) -> dict[str, Any]:
    """
    Returns the JSON Schema (draft 2020-12) of a policy file, which may have a person's *own* guards.

    Only `version` is required at the top level: any other key may come from a policy it extends.
    """
    named: dict[str, Any] = {"Envelope": {"type": "object", "properties": {}, "additionalProperties": False}}
    json_schema(policy_type(kinds_of(own)), named)
    whole, dialect = named.pop("Policy"), "https://json-schema.org/draft/2020-12/schema"
    for name, (key, part) in PARTS.items():
        named[key.capitalize()]["properties"][part] = whole["properties"].pop(name)
    whole["properties"]["envelope"] = {"anyOf": [{"enum": [*FORMS]}, {"$ref": "#/$defs/Envelope"}]}
    return {"$schema": dialect, **whole, "required": ["version"], "$defs": named}


@cache
def _guards(kinds: Kinds, place: Literal["", "Tool", "Scope"]) -> dict[str, Any]:
    """
    The types of the settings that each of *kinds* may have in a *place*: the policy, a rule, a scope. They make guards; in a rule, whose others are the policy's, maps.
    """
    settings: dict[str, Any] = {}
    for cls in kinds:
        allowed = {"": None, "Tool": cls.tool_settings, "Scope": cls.scope_settings}[place]
        if allowed == () or (place == "Scope" and not overrides(cls, "edges")):
            continue
        whole = map_type(cls)
        types = {name: kind for name, kind in whole.types.items() if allowed is None or name in allowed}
        settings[cls.name] = made = dataclasses.replace(
            whole,
            name=cls.__name__ if allowed is None else f"{place}{cls.__name__}",
            types=types | {other: types[name] for other, name in cls.aliases.items() if name in types},
            required=whole.required & types.keys(),
            make=partial(_settings if place == "Tool" else _guard, cls),
        )
        if cls.listed is not None and not place:
            one: Any = Annotated[whole.types[cls.listed], Checked(partial(_listed, cls))]
            settings[cls.name] = Union[made, one]  # noqa: UP007
    return settings


def scope_name(name: str) -> str:
    """
    Returns *name* if it may name a scope: codes begin with it. Raises ValueError.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", name) or name in _TAKEN:
        rule = "a letter, then letters, digits and `_`, 32 at most, and no word that codes begin with"
        raise ValueError(f"a scope is named like `user`: {rule}, not `{name}`")
    return name


def _scope(**guards: Guard) -> list[Guard]:
    if not guards:
        raise ValueError("a scope without guards limits nothing")
    return sorted(guards.values(), key=place_of)


def _listed(cls: type[Guard], listed: Any) -> Guard:
    return _guard(cls, **{str(cls.listed): listed})


def _settings(cls: type[Guard], **settings: Any) -> dict[str, Any]:
    return respelt(settings, cls.aliases, ValueError)


def _guard(cls: type[Guard], **settings: Any) -> Guard:
    made = cls(**_settings(cls, **settings))
    made.check_settings(_values(made))
    return made


def _values(made: Any) -> dict[str, Any]:
    return {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}


def _rule(ruled: Iterable[str], *, match: Any, mode: Any = None, on_error: Any = None, **entry: Any) -> Rule:
    guards = {name: entry.pop(name) for name in ruled if isinstance(entry.get(name), dict)}
    return Rule(match=match, declared=entry, guards=guards, mode=mode, on_error=on_error)


def _arguments(names: Iterable[str], tools: Iterable[Rule] = (), **settings: Any) -> dict[str, Any]:
    # What a file calls tools is rules in code.
    return {"guards": [settings.pop(name) for name in names if name in settings], "rules": tools, **settings}


def _code(codes: Collection[str], free: tuple[str, ...], written: str) -> str:
    # The codes of a scope begin with its name.
    if not {written, written.partition(".")[2]}.intersection(codes) and not written.startswith(free):
        raise ValueError(f"no guard says {quoted(written)}{suggestion(written, sorted(codes))}")
    return written


def _word(codes: Mapping[str, Numbers], text: str) -> str:
    from string import Template

    known = sorted({name for numbers in codes.values() for name in numbers or ()})
    for name in Template(text).get_identifiers():
        if name not in known:
            raise ValueError(f"`${name}` stands for nothing in any message{suggestion(name, known)}")
    return text


# Guards, tools, rules and prices in code


def checked_settings(
    guards: Iterable[Guard] = (),
    kinds: Iterable[type[Guard]] = (),
    scopes: Mapping[str, Iterable[Guard]] | None = None,
    tools: Iterable[Tool | Callable[..., Any]] = (),
    rules: Iterable[Rule] = (),
    **settings: Any,
) -> dict[str, Any]:
    """
    Returns the settings of a policy, as those of a file are made; what is None is not set. The *kinds* are those that only rules set.
    Raises PolicyError with every mistake.
    """
    mistakes: list[str] = []
    given = _named(guards, Guard, "", mistakes)
    shared = {scope: _named(each, Guard, f"scopes.{scope}: ", mistakes) for scope, each in (scopes or {}).items()}
    own = [type(guard) for named in (given, *shared.values()) for guard in named.values()]
    known = kinds_of((*kinds, *own))
    each = {at: {name: one.settings() for name, one in some.items()} for at, some in {"": given, **shared}.items()}
    written = {key: value for key, value in settings.items() if value is not None} | each.pop("") | {"scopes": each}
    # A guard in the place of one of the library's has its name.
    types = (*known, *(cls for cls in own if cls not in known))
    made: dict[str, Any] = _fitted(policy_type(types), written, mistakes)
    made |= {"rules": _fitted(_rules_type(types), [*rules], mistakes, "rules"), "kinds": known}
    # A tool may be a function, which is one by its name, docstring and signature.
    of_functions = (Tool.of(each) if callable(each) and hasattr(each, "__name__") else each for each in tools)
    named = _named(of_functions, Tool, "tools: ", mistakes)
    made["tools"] = _fitted(dict[str, Tool], named, mistakes, "tools")
    if mistakes:
        raise PolicyError(mistakes)
    return made


def chains_of(settings: Mapping[str, Any]) -> tuple[Chain, dict[str, Chain]]:
    """
    Returns the chain of *settings* that were checked, and that of each scope. Raises PolicyError if some do not go together, or a file that they
    name cannot be read.
    """
    modes = {name: settings[name] for name in ("mode", "on_error")}
    given = modes | {key: settings[key] for key in ("rules", "kinds", "by_name", "tools")}
    words, left_out = settings.get("messages", {}), OPTIONAL - set(settings.get("fields", OPTIONAL))
    scopes = {SESSION: [*settings["guards"]], **{scope: [*own] for scope, own in settings["scopes"].items()}}
    for rules in [guard for guard in scopes[SESSION] if isinstance(guard, Rules)]:
        scopes[SESSION].remove(rules)
        for scope in dict.fromkeys([SESSION, *(one.scope for one in rules.rules)]):
            counted = rules.but({"rules": tuple(one for one in rules.rules if one.scope == scope)})
            scopes.setdefault(scope, []).append(counted)
    order, form = sorted(scopes.pop(SESSION), key=place_of), settings.get("envelope")
    chain = Chain(order, form=form, left_out=left_out, messages=words, **given)
    # Only those rules hold in a scope that set the mode in which a tool is guarded.
    ruled = [dataclasses.replace(one, declared={}, guards={}) for one in settings["rules"] if one.mode or one.on_error]
    shared = {}
    for scope, own in sorted(scopes.items()):
        ours = {at.removeprefix(f"{scope}."): one for at, one in words.items() if at.startswith((f"{scope}.", ERROR))}
        shared[scope] = Chain(own, rules=ruled, messages=ours, **modes)
    guards = [*chain.guards, *chain.ruled(), *(guard for each in shared.values() for guard in each.guards)]
    misfits = (one for guard in guards if isinstance(guard, Rules) for one in guard.misfits(settings["tools"]))
    if mistakes := dict.fromkeys(unusable(guards)) or dict.fromkeys(misfits):
        raise PolicyError([*mistakes])
    return chain, shared


def _named(given: Iterable[Any], kind: type[Any], where: str, mistakes: list[str]) -> dict[str, Any]:
    """
    Returns what is *given* by its name, if it is of the *kind*.
    """
    named: dict[str, Any] = {}
    for one in given:
        if not isinstance(one, kind):
            wanted = "tool: write a `Tool`" if kind is Tool else "guard: write one such as `Budget(max_calls=20)`"
            mistakes.append(f"{where}`{one!r:.80}` is no {wanted}")
        elif one.name in named:
            mistakes.append(f"{where}`{one.name}` is given twice")
        else:
            named[one.name] = one
    return named


def _fitted(kind: Any, value: Any, mistakes: list[str], *path: str) -> Any:
    """
    Returns *value* as its type makes it; what is wrong is added to the *mistakes*.
    """
    made, faults = fit(kind, value, path)
    for fault in faults:
        place = fault.path[: -1 if fault.kind == "key" else None]
        mistakes.append(f"{'.'.join(map(str, place))}: {fault.sentence(f'`{fault.value!r:.80}`')}")
    return made


def unusable(guards: Iterable[Guard]) -> Iterator[str]:
    """
    Returns the mistakes in settings of *guards* that are each valid by themselves, and a problem for each file that they name and could not
    read.
    """
    for guard in guards:
        try:
            guard.check_settings(_values(guard))
            guard.prepare()
        except (ValueError, GuardrailsError) as error:
            yield from (f"{guard.name}: {mistake}" for mistake in getattr(error, "mistakes", [error]))
