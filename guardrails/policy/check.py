"""
Holds settings written in code to the same rules as a policy file.
"""

import dataclasses

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from guardrails.core.arguments import arguments_of
from guardrails.core.chain import Rule
from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard, overrides
from guardrails.core.guards.settings import respelt
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.plain_types import UnsureError, fitted, hints
from guardrails.core.values.usage import Price


if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


_OWN: Final[frozenset[type]] = frozenset({*GUARDS, Price, Tool})


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
        if not overrides(guard, "check_settings"):
            continue
        try:
            guard.check_settings({field.name: getattr(guard, field.name) for field in dataclasses.fields(guard)})
        except ValueError as error:
            found.append(f"{guard.name}: {error}")
    return found


def unprepared(guards: Iterable[Guard]) -> list[str]:
    """
    Returns a problem for each file that *guards* name in their settings and could not read.
    """
    found = []
    for guard in guards:
        try:
            guard.prepare()
        except GuardrailsError as error:
            found.append(f"{guard.name}: {error}")
    return list(dict.fromkeys(found))


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


def checked_rules(rules: Iterable[Rule], mistakes: list[str], kinds: tuple[type[Guard], ...] = GUARDS) -> list[Rule]:
    """
    Returns the rules that are valid. Faults of the others go into *mistakes*. *kinds* are the guards that they may set.
    """
    valid: list[Rule] = []
    for place, rule in enumerate(rules):
        where = f"rules.{place}"
        if not isinstance(rule, Rule):
            mistakes.append(
                f"{where}: `{rule!r:.80}` is no rule: write `Rule(match=..., declared={{...}}, guards={{...}})`"
            )
        else:
            valid += _checked_rule(rule, where, mistakes, kinds)
    return valid


def _checked_rule(rule: Rule, where: str, mistakes: list[str], kinds: tuple[type[Guard], ...]) -> list[Rule]:
    from .file.document import rule_adapter, rule_type

    names = {cls.name: cls.aliases for cls in kinds}
    found = len(mistakes)
    if not rule.match:
        mistakes.append(f"{where}.match: a rule matches one glob of tool names at least")
    declared: Any = _tuples(rule.declared)
    guards: Any = rule.guards
    if isinstance(guards, Mapping):
        guards = {name: _named(own, names.get(name, {}), f"{where}.{name}", mistakes) for name, own in guards.items()}
    match = tuple(rule.match) if isinstance(rule.match, (list, set, frozenset)) else rule.match
    given = {"match": match, "declared": declared, "guards": guards, "mode": rule.mode, "on_error": rule.on_error}
    try:
        made = fitted(rule_type(kinds), given)
    except UnsureError:
        from pydantic import ValidationError

        try:
            made = rule_adapter(kinds).validate_python(given)
        except ValidationError as error:
            mistakes += _told(error, where)
            return []
    mistakes += _wrong_schema(made["declared"].get("parameters"), f"{where}.declared.parameters")
    return [] if mistakes[found:] else [Rule(**made)]


def _named(settings: Any, aliases: Mapping[str, str], where: str, mistakes: list[str]) -> Any:
    """
    The settings of a guard under its own names for them.
    """
    if not isinstance(settings, Mapping):
        return settings
    named, twice = respelt(_tuples(settings), aliases)
    mistakes += [f"{where}: {one}" for one in twice]
    return named


def _tuples(settings: Any) -> Any:
    if not isinstance(settings, Mapping):
        return settings
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _wrong_schema(parameters: Any, where: str) -> list[str]:
    if not isinstance(parameters, Mapping):
        return []
    try:
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


def wrong_words(messages: Mapping[str, Mapping[str, str]], guards: Iterable[Guard], scope: str = "") -> list[str]:
    """
    Returns the mistakes in a policy's own wording of the messages of *guards* and of the library, in a *scope* or
    without.
    """
    if not messages:
        return []

    from guardrails.policy.file.messages import wrong_code, wrong_numbers

    own = [guard for guard in guards if type(guard) not in GUARDS]
    found: list[str] = []
    for code, words in messages.items():
        where = f"messages.{scope}.{code}" if scope else f"messages.{code}"
        if not isinstance(words, Mapping):
            found.append(f"{where}: `{words!r:.80}` is no wording: write {{'message': ..., 'hint': ...}}")
            continue
        found += [
            f"{where}: `{key}` is no text of a denial: use message and hint, each a string"
            for key, text in words.items()
            if key not in ("message", "hint") or not isinstance(text, str)
        ]
        wrong = wrong_code(code, own)
        found += [f"{where}: {said}" for said in ([wrong] if wrong else wrong_numbers(code, words, own))]
    return found


def _checked(given: Any, where: str, mistakes: list[str]) -> list[Any]:
    try:
        return [_plainly_right(given)]
    except UnsureError:
        return _checked_by_pydantic(given, where, mistakes)


def _plainly_right(given: Any) -> Any:
    """
    *given* again, checked without pydantic. A person's own guard may tell pydantic more than its types.
    """
    kind: Any = type(given)
    if kind not in _OWN:
        raise UnsureError
    types = hints(kind)
    values = {f.name: fitted(types[f.name], getattr(given, f.name), written=True) for f in dataclasses.fields(kind)}
    return dataclasses.replace(given, **values)


def _checked_by_pydantic(given: Any, where: str, mistakes: list[str]) -> list[Any]:
    from pydantic import PydanticUserError, ValidationError

    kind: Any = type(given)
    try:
        hints = get_type_hints(kind, include_extras=True)
        lists: dict[str, Any] = {
            f.name: tuple(value)
            for f in dataclasses.fields(given)
            if isinstance(value := getattr(given, f.name), list) and _takes_tuple(hints[f.name])
        }
        return [adapter(kind).validate_python(dataclasses.replace(given, **lists))]
    except ValidationError as error:
        mistakes += _told(error, where)
    except (PydanticUserError, NameError) as error:
        mistakes += _unknown_types(kind, where) or [f"{where}: its settings cannot be checked: {_first_line(error)}"]
    return []


def _told(error: "ValidationError", where: str) -> list[str]:
    told = []
    for found in error.errors(include_url=False):
        place = ".".join(str(part) for part in (where, *found["loc"]))
        said = found["msg"].removeprefix("Value error, ")
        said = said if found["type"] == "value_error" else f"{said.lower()}, got `{found['input']!r:.80}`"
        told.append(f"{place}: {said}")
    return told


def _unknown_types(kind: Any, where: str) -> list[str]:
    """
    The settings whose types pydantic cannot check, one by one.
    """
    from pydantic import PydanticUserError

    told = []
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError:
        return []
    for field in dataclasses.fields(kind):
        try:
            adapter(hints[field.name])
        except PydanticUserError as error:
            shown = getattr(field.type, "__name__", None) or str(field.type)
            told.append(f"{where}.{field.name}: the type `{shown}` cannot be checked: {_first_line(error)}")
    return told


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(". ")[0]


def _takes_tuple(hint: Any) -> bool:
    return get_origin(hint) is tuple or hint is tuple or any(_takes_tuple(part) for part in _parts(hint))


def _parts(hint: Any) -> tuple[Any, ...]:
    kind = get_origin(hint)
    if kind is Annotated:
        return get_args(hint)[:1]
    return get_args(hint) if kind in (Union, UnionType) else ()


@lru_cache(maxsize=256)
def adapter(cls: Any) -> "TypeAdapter[Any]":
    """
    pydantic's check of the settings that *cls* is.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(cls)
