"""
Settings written in code, held to the same rules as a policy file; and the rules of both: names of scopes, a policy's own words.

Promises, each with a test:

* Everything that is wrong is told at once, each with the name of the setting.
* What is plainly right needs no pydantic. A list stands for a tuple, `30s` for seconds.
* A code that no guard says, and a `$number` that its message does not have, are mistakes. A guard that does not declare its codes may have
  any that begin with its name.
* A scope has guards that count: no setting there is a session's own.
"""

import dataclasses

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from string import Template
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.arguments import arguments_of
from guardrails.core.chain import Chain, Rule
from guardrails.core.guards import GUARDS, Kinds, place_of
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.guards.settings import respelt
from guardrails.core.guards.tool_filter import Held
from guardrails.core.refusals import CODES as ENGINE_CODES
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.plain_types import UnsureError, fitted, hints
from guardrails.core.values.usage import Price


if TYPE_CHECKING:
    from pydantic import TypeAdapter

Own = Iterable[type[Guard] | Guard]
Numbers = tuple[str, ...] | None
"""Names of the numbers behind a message; None: not known."""
Messages = Mapping[str, Mapping[str, str]]

_PLAIN: Final[frozenset[type]] = frozenset({*GUARDS, Price, Tool})
_SCOPE: Final = pattern(r"[a-z][a-z0-9_]{0,31}")
_TAKEN: Final = frozenset({"session", "scopes", "store", "tools", *(cls.name for cls in GUARDS)})


# Guards, tools, rules and prices


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
            found = _checked(guard, guard.name, mistakes)
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
            guard.check_settings({field.name: getattr(guard, field.name) for field in dataclasses.fields(guard)})
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
            valid += _checked(tool, f"tools.{tool.name}", mistakes)
            mistakes += _wrong_schema(tool.parameters, f"tools.{tool.name}.parameters")
    return valid


def checked_rules(rules: Iterable[Rule], mistakes: list[str], kinds: Kinds = GUARDS) -> list[Rule]:
    """
    Returns the rules that are valid. Faults of the others go into *mistakes*. *kinds* are the guards that they may set.
    """
    valid: list[Rule] = []
    for place, rule in enumerate(rules):
        where, before = f"rules.{place}", len(mistakes)
        if not isinstance(rule, Rule):
            hint = "write `Rule(match=..., declared={...}, guards={...})`"
            mistakes.append(f"{where}: `{rule!r:.80}` is no rule: {hint}")
            continue
        if not rule.match:
            mistakes.append(f"{where}.match: a rule matches one glob of tool names at least")
        made = _rule(rule, where, mistakes, kinds)
        mistakes += _wrong_schema(made.get("declared", {}).get("parameters"), f"{where}.declared.parameters")
        valid += [] if mistakes[before:] else [Rule(**made)]
    return valid


def _rule(rule: Rule, where: str, mistakes: list[str], kinds: Kinds) -> dict[str, Any]:
    from .schema import adapter, plain_type

    aliases, guards = {cls.name: cls.aliases for cls in kinds}, dict[str, Any]()
    for name, own in rule.guards.items() if isinstance(rule.guards, Mapping) else ():
        guards[name], twice = respelt(tuples(own), aliases.get(name, {})) if isinstance(own, Mapping) else (own, [])
        mistakes += [f"{where}.{name}: {one}" for one in twice]
    match = tuple(rule.match) if isinstance(rule.match, (list, set, frozenset)) else rule.match
    declared = tuples(rule.declared) if isinstance(rule.declared, Mapping) else rule.declared
    given: dict[str, Any] = {
        "match": match,
        "declared": declared,
        "guards": guards if isinstance(rule.guards, Mapping) else rule.guards,
    }
    given |= {"mode": rule.mode, "on_error": rule.on_error}
    try:
        made: dict[str, Any] = fitted(plain_type(kinds, rule=True), given)
    except UnsureError:
        return _by_pydantic(adapter(kinds, rule=True), given, where, mistakes) or {}
    return made


def tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """
    Returns *settings* with a tuple in place of each list.
    """
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _wrong_schema(parameters: Any, where: str) -> list[str]:
    try:
        if isinstance(parameters, Mapping):
            arguments_of(parameters)
    except PolicyError as error:
        return [f"{where}: {mistake}" for mistake in error.mistakes]
    return []


def checked_prices(prices: Mapping[str, Price | Mapping[str, float]], mistakes: list[str]) -> dict[str, Price]:
    """
    Returns the prices that are valid. Faults of the others go into *mistakes*.
    """
    valid: dict[str, Price] = {}
    for model, given in prices.items():
        try:
            price = given if isinstance(given, Price) else Price(**given)
        except TypeError as error:
            mistakes.append(f"prices.{model}: {str(error).removeprefix('Price.__init__() ')}")
            continue
        for checked in _checked(price, f"prices.{model}", mistakes):
            valid[model] = checked
    return valid


def _checked(given: Any, where: str, mistakes: list[str]) -> list[Any]:
    """
    *given* again, as its types make it.
    """
    kind: Any = type(given)
    try:
        if kind not in _PLAIN:
            # A person's own guard may tell pydantic more than its types.
            raise UnsureError
        types = hints(kind)
        values = {f.name: fitted(types[f.name], getattr(given, f.name)) for f in dataclasses.fields(kind)}
        return [dataclasses.replace(given, **values)]
    except UnsureError:
        made = by_pydantic(given, where, mistakes)
        return [] if made is None else [made]


def by_pydantic(given: Any, where: str, mistakes: list[str]) -> Any:
    """
    Returns *given*, a dataclass, as pydantic makes it. None if it is not valid, which goes into *mistakes*.
    """
    from pydantic import PydanticUserError

    kind: Any = type(given)
    try:
        names = [f.name for f in dataclasses.fields(kind) if "tuple[" in str(hints(kind)[f.name])]
        values = {name: getattr(given, name) for name in names}
        return _by_pydantic(adapter(kind), dataclasses.replace(given, **tuples(values)), where, mistakes)
    except (PydanticUserError, NameError) as error:
        said = str(error).partition("\n")[0].partition(". ")[0]
        mistakes.append(f"{where}{_unknown_type(kind)} cannot be checked: {said}")
    return None


def _unknown_type(kind: Any) -> str:
    """
    The first setting of *kind* whose type pydantic cannot check.
    """
    from pydantic import PydanticUserError

    for field in dataclasses.fields(kind):
        try:
            adapter(hints(kind)[field.name])
        except PydanticUserError:
            return f".{field.name}: the type `{getattr(field.type, '__name__', None) or field.type}`"
        except NameError:
            break
    return ": its settings"


def _by_pydantic(checked: "TypeAdapter[Any]", given: Any, where: str, mistakes: list[str]) -> Any:
    from pydantic import ValidationError

    try:
        return checked.validate_python(given)
    except ValidationError as error:
        for found in error.errors(include_url=False):
            place = ".".join(str(part) for part in (where, *found["loc"]))
            said = found["msg"].removeprefix("Value error, ")
            said = said if found["type"] == "value_error" else f"{said.lower()}, got `{found['input']!r:.80}`"
            mistakes.append(f"{place}: {said}")
    return None


@lru_cache(maxsize=256)
def adapter(cls: Any) -> "TypeAdapter[Any]":
    """
    Returns pydantic's check of the settings that *cls* is.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


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
    return f"no guard says `{code}`{_near(code, sorted(known))}"


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
        f"`${name}` stands for nothing here{_near(name, numbers)}; there are: {there}"
        for name in used
        if name not in numbers
    ]


def _near(written: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(written, names, 1)
    return f", did you mean `{near[0]}`?" if near else ""


def wrong_words(messages: Messages, guards: Iterable[Guard], scope: str = "") -> list[str]:
    """
    Returns the mistakes in a policy's own wording of the messages of *guards* and of the library, in a *scope* or without.
    """
    own = [guard for guard in guards if isinstance(guard, Guard) and type(guard) not in GUARDS]
    found: list[str] = []
    for code, words in messages.items():
        where = f"messages.{scope}.{code}" if scope else f"messages.{code}"
        if not isinstance(words, Mapping):
            found.append(f"{where}: `{words!r:.80}` is no wording: write {{'message': ..., 'hint': ...}}")
            continue
        for key, text in words.items():
            if key not in ("message", "hint") or not isinstance(text, str):
                found.append(f"{where}: `{key}` is no text of a denial: use message and hint, each a string")
        wrong = wrong_code(code, own)
        found += [f"{where}: {said}" for said in ([wrong] if wrong else wrong_numbers(code, words, own))]
    return found


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
    if guard.scope_settings == ():
        known = ", ".join(f"`{cls.name}`" for cls in GUARDS if cls.scope_settings != ())
        return [f"`{guard.name}` looks at one session's own calls; a scope may have {known}"]
    if guard.scope_settings is None:
        shapes = f"`{guard.name}` shapes results, which is a session's own: give it to the policy"
        return [shapes] if overrides(guard, "shape") else []
    own = guard.settings().keys() - guard.scope_settings
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
