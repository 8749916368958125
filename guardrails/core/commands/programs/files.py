"""
Reading the rules of a program from `rules/PROGRAM.json`, when they are first needed, by a schema that knows no other keys.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast, get_args

import orjson

from .kinds import KINDS
from .rules import NAMES, Leading, Listed, Operands, Program, Rules, Style, Takes


_T = TypeVar("_T")


class BadRulesError(ValueError):
    """
    A file of rules that is not as the schema says.
    """


@lru_cache(maxsize=len(NAMES))
def program(name: str) -> Program:
    """
    Returns the rules of *name*, one of `NAMES`. Raises BadRulesError for another name, and for a file that is not as it
    should be.
    """
    if name not in NAMES:
        raise BadRulesError(f"there are no rules for `{name[:80]}`")
    return parsed(orjson.loads((Path(__file__).parent / "rules" / f"{name}.json").read_bytes()), name)


def parsed(said: object, name: str) -> Program:
    """
    Returns the rules of *name* that *said* holds. Raises BadRulesError for a key, a kind or a type that the schema does
    not know.
    """
    given = _keys(said, name, "program does style any_word environment shared", {"program", "does"}, rest=_OF_RULES)
    if given["program"] != name:
        raise BadRulesError(f"{name}: it is for `{given['program']}`")
    style = given.get("style", "options")
    if style not in get_args(Style):
        raise BadRulesError(f"{name}: no style `{style}`")
    shared = _type(given.get("shared", {}), dict, name)
    return Program(
        name=name,
        does=_type(given["does"], str, name),
        rules=_rules({key: value for key, value in given.items() if key in _OF_RULES}, name, shared),
        style=cast("Style", style),
        any_word=_type(given.get("any_word", False), bool, name),
        environment=_texts(given.get("environment", {}), name),
    )


_LISTS: Final[tuple[Takes, ...]] = ("flags", "valued", "attached", "last", "pairs")
_OF_RULES: Final = frozenset(
    {*_LISTS, "with", "numbers", "bundled", "old_bundle", "leading", "operands", "required", "subcommands", "alone"}
    | {"left_out", "instead", "added"}
)


def _rules(said: object, at: str, shared: Mapping[str, Any]) -> Rules:
    given = _keys(said, at, "", set(), rest=_OF_RULES)
    parts = [given]
    for name in _type(given.get("with", ""), str, at).split():
        if name not in shared:
            raise BadRulesError(f"{at}: no shared rules `{name}`")
        parts.append(_keys(shared[name], f"{at}.{name}", "", set(), rest=frozenset({*_LISTS, "left_out"})))
    options: dict[str, Listed] = {}
    left_out: dict[str, str] = {}
    for part in parts:
        for option, listed in _options(part, at):
            if options.setdefault(option, listed) != listed:
                raise BadRulesError(f"{at}: `{option}` is listed twice")
        for names, reason in _texts(part.get("left_out", {}), at).items():
            left_out |= dict.fromkeys(names.split(), reason)
    if not options.keys().isdisjoint(left_out):
        raise BadRulesError(f"{at}: listed and left out are {sorted(options.keys() & left_out)}")
    subcommands = {
        name: _rules(rules, f"{at} {name}", shared)
        for names, rules in _type(given.get("subcommands", {}), dict, at).items()
        for name in names.split()
    }
    return Rules(
        options=options,
        numbers=_type(given.get("numbers", False), bool, at),
        bundled=_type(given.get("bundled", True), bool, at),
        old_bundle=_type(given.get("old_bundle", False), bool, at),
        leading=_leading(given.get("leading"), at, options),
        operands=_operands(given.get("operands", {}), at, options),
        required=tuple(_named(group, at, options) for group in _type(given.get("required", []), list, at)),
        subcommands=subcommands,
        alone=_type(given.get("alone", False), bool, at),
        left_out=left_out,
        instead=_type(given.get("instead", ""), str, at),
        added=tuple(_type(given.get("added", ""), str, at).split()),
    )


def _options(part: Mapping[str, Any], at: str) -> Iterator[tuple[str, Listed]]:
    for takes in _LISTS:
        kinds = part.get(takes, "" if takes == "flags" else {})
        for kind, names in ({"text": kinds} if takes == "flags" else _texts(kinds, at)).items():
            for name in _type(names, str, at).split():
                if not name.startswith("-") or name in ("-", "--") or "=" in name:
                    raise BadRulesError(f"{at}: `{name}` is no option")
                yield name, Listed(takes=takes, kind=_kind(kind, at))


def _leading(said: object, at: str, options: Mapping[str, Listed]) -> Leading | None:
    if said is None:
        return None
    given = _keys(said, at, "kind unless", {"kind"})
    return Leading(kind=_kind(given["kind"], at), unless=_named(given.get("unless", ""), at, options))


def _operands(said: object, at: str, options: Mapping[str, Listed]) -> Operands:
    given = _keys(said, at, "kind least most only_with", set())
    most = given.get("most")
    return Operands(
        kind=_kind(given.get("kind", "path"), at),
        least=_type(given.get("least", 0), int, at),
        most=None if most is None else _type(most, int, at),
        only_with=_named(given.get("only_with", ""), at, options),
    )


def _named(said: object, at: str, options: Mapping[str, Listed]) -> frozenset[str]:
    names = frozenset(_type(said, str, at).split())
    if not names <= options.keys():
        raise BadRulesError(f"{at}: not listed are {sorted(names - options.keys())}")
    return names


def _kind(name: object, at: str) -> str:
    if name not in KINDS:
        raise BadRulesError(f"{at}: no kind `{name}`")
    return cast("str", name)


def _keys(said: object, at: str, names: str, needed: set[str], *, rest: frozenset[str] = frozenset()) -> dict[str, Any]:
    given = _type(said, dict, at)
    known = rest.union(names.split())
    if not given.keys() <= known or not needed <= given.keys():
        raise BadRulesError(f"{at}: unknown {sorted(given.keys() - known)}, missing {sorted(needed - given.keys())}")
    return given


def _texts(said: object, at: str) -> dict[str, str]:
    return {key: _type(value, str, at) for key, value in _type(said, dict, at).items()}


def _type(value: object, kind: type[_T], at: str) -> _T:
    if type(value) is not kind:
        raise BadRulesError(f"{at}: `{value}` is no {kind.__name__}")
    return value
