"""
What is told of a value without pydantic: the same as with it, or nothing.
"""

import dataclasses
import json

from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, ValidationError

from guardrails.core.guards import GUARDS
from guardrails.core.guards.base import Guard, guard
from guardrails.core.guards.loops import Grades
from guardrails.core.guards.settings import Map
from guardrails.core.tools.tool import Tool
from guardrails.core.values.bounds import MaxLen, MinLen
from guardrails.core.values.plain_types import Checked, UnsureError, fitted, hints
from guardrails.core.values.units import Duration
from guardrails.core.values.usage import Price
from guardrails.policy.check import _checked, by_pydantic
from guardrails.policy.document import aliases_of
from guardrails.policy.file import names, plain, read
from guardrails.policy.schema import adapter, plain_type
from tests.tables import table


STRICT = ConfigDict(strict=True)
SETTINGS = {
    f"{cls.__name__}.{field.name}": hints(cls)[field.name]
    for cls in (*GUARDS, Price, Tool)
    for field in dataclasses.fields(cls)
    if field.name not in ("parameters", "result")
}
WORDS = [
    "", "30s", "0s", "1.5h", "7d", "64KiB", "255B", "64KB", "*", "get_*", "[", "[!]]", "deny", "allow", "warn", "enforce",
    "off", "always", "evidence", "git status", "rm -rf *", "\ud800", "ünï", "$limit",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(WORDS),
)
GRADES = st.dictionaries(st.sampled_from(["nudge", "deny", "nonsense"]), SCALARS, max_size=2)
"""What settings with keys of their own have."""
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from(WORDS[1:]), SCALARS, max_size=2), GRADES
)


def same(one: Any, other: Any) -> bool:
    return one == other and repr(one) == repr(other)


def strictly(kind: Any) -> TypeAdapter[Any]:
    # A type that has a config of its own takes no other, a list of it does.
    return TypeAdapter(list[kind], config=STRICT)


@given(st.sampled_from(sorted(SETTINGS)), VALUES)
def test_a_setting_that_fits_is_what_pydantic_makes_of_it(name: str, value: Any) -> None:
    try:
        made = fitted(SETTINGS[name], value)
    except UnsureError:
        return
    assert same(made, strictly(SETTINGS[name]).validate_json(json.dumps([value]))[0])


@given(GRADES, st.sampled_from([Grades]))
def test_a_map_that_is_checked_again_is_what_pydantic_makes_of_it(value: dict[str, Any], kind: Any) -> None:
    try:
        made = fitted(kind, Map(value))
    except UnsureError:
        return
    assert type(made) is Map
    assert same(made, TypeAdapter(kind).validate_python(Map(value)))


def of_guard(cls: Any) -> st.SearchStrategy[dict[str, Any]]:
    keys = [field.name for field in dataclasses.fields(cls)]
    return st.dictionaries(
        st.sampled_from(keys), st.one_of(SCALARS, st.lists(st.sampled_from(WORDS), max_size=2), GRADES), max_size=2
    )


GIVEN = st.one_of([of_guard(cls).map(lambda settings, name=cls.name: (name, settings)) for cls in GUARDS])  # type: ignore[misc]
RULES = st.builds(
    lambda match, declared, guards: {"match": match, **declared, **dict(guards)},
    st.one_of(st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), max_size=2)),
    of_guard(Tool),
    st.lists(GIVEN, max_size=1),
)
DOCUMENTS = st.builds(
    lambda guards, rest: {**dict(guards), **rest},
    st.lists(GIVEN, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(WORDS),
            "fields": st.lists(st.sampled_from(["total_matches", "nonsense"]), max_size=2),
            "prices": st.dictionaries(
                st.sampled_from(["m", "*"]), st.fixed_dictionaries({"input_mtok": SCALARS}), max_size=1
            ),
            "messages": st.dictionaries(
                st.sampled_from(["budget.max_calls", "user.budget.max_calls", "nonsense"]),
                st.fixed_dictionaries({"message": st.sampled_from(["$limit", "$nonsense", "", 1])}),
                max_size=1,
            ),
            "tools": st.lists(RULES, max_size=2),
            "scopes": st.dictionaries(
                st.sampled_from(["user", "session"]), st.lists(GIVEN, max_size=1).map(dict), max_size=1
            ),
        },
    ),
)


@given(DOCUMENTS)
def test_a_policy_that_fits_is_what_pydantic_makes_of_it(document: dict[str, Any]) -> None:
    try:
        made = fitted(plain_type(GUARDS), document)
    except UnsureError:
        return
    assert same(made, adapter(GUARDS).validate_json(json.dumps(document)))


@table("name", names())
def test_the_shipped_policies_need_no_pydantic(name: str) -> None:
    root = read(name, aliases_of(GUARDS)).root
    assert root is not None
    made = fitted(plain_type(GUARDS), plain(root))
    assert same(made, adapter(GUARDS).validate_json(json.dumps(plain(root))))


@given(st.sampled_from(GUARDS).flatmap(lambda cls: st.tuples(st.just(cls), of_guard(cls))))
def test_a_guard_made_in_code_is_what_pydantic_makes_of_it(made: tuple[Any, dict[str, Any]]) -> None:
    cls, settings = made
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    mistakes: list[str] = []
    others: list[str] = []
    try:
        guard = cls(**settings)
    except TypeError:
        return
    plainly, by = _checked(guard, cls.name, mistakes), by_pydantic(guard, cls.name, others)
    assert (plainly, mistakes) == ([] if by is None else [by], others)


def test_the_loops_of_a_file_have_grades() -> None:
    made = fitted(plain_type(GUARDS), {"loops": {"cycle": {"deny": 4}, "empty": {"nudge": 1}}})
    assert same(made, {"loops": {"cycle": Map(deny=4), "empty": Map(nudge=1)}})


@guard
class Own(Guard):
    most: int = 1


def test_guards_of_a_person_are_for_pydantic_to_check() -> None:
    with pytest.raises(UnsureError):
        plain_type((*GUARDS, Own))


class Half(TypedDict):
    number: int
    text: NotRequired[str]


def positive(value: int) -> int:
    if value <= 0:
        raise ValueError("no")
    return -value


@table(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.0),
        (str, "\ud800"),
        (float, 2**60),
        (bool, 1),
        (Duration, "soon"),
        (Literal["a"], "b"),
        (tuple[str, ...], "ab"),
        (tuple[int, str], [1, "a"]),
        (Annotated[list[int], MinLen(1)], []),
        (Annotated[list[int], MaxLen(1)], [1, 2]),
        (Half, {"text": "a"}),
        (Half, {"number": 1, "other": 1}),
        (Half, MappingProxyType({"number": 1})),
        (Grades, {"deny": 0}),
        (Grades, {"never": 3}),
        (Annotated[int, Checked(positive)], 0),
        (Annotated[int, "a mark of somebody's"], 1),
        (int | float, 1),
        (bytes, b"a"),
    ],
)
def test_all_else_is_for_pydantic_to_say(kind: Any, value: Any) -> None:
    with pytest.raises(UnsureError):
        fitted(kind, value)


def test_a_check_is_one_to_pydantic_too() -> None:
    checked = TypeAdapter(Annotated[int, Checked(positive)])
    assert checked.validate_python(2) == -2
    with pytest.raises(ValidationError, match="no"):
        checked.validate_python(0)
