"""
The faults of a value at the places of a YAML tree.
"""

from typing import Annotated, Any, Literal, TypedDict

from annotated_types import Ge, Gt, Le, Len, Lt, MultipleOf
from pydantic import AfterValidator

from guardrails.core.values.schema import Checked, fit
from guardrails.policy.file import mistakes_at, parse, plain
from tests.tables import table


class Square(TypedDict):
    kind: Literal["square"]
    side: int


def odd(value: int) -> int:
    if value % 2 == 0:
        raise ValueError(f"must be odd,\n  got `{value}`")

    return value


def asserted(value: int) -> int:
    if value == 4:
        raise AssertionError("four is unlucky")

    return value


def mistakes(kind: Any, value: str) -> list[str]:
    parsed = parse(f"a: {value}\n", "t")
    assert parsed.root is not None
    _, faults = fit(dict[str, kind], plain(parsed.root))
    found = mistakes_at(faults, parsed.root)

    return [f"{m.position.line}:{m.position.column}: {m.message}" for m in found]


@table(
    ("kind", "value", "expected"),
    [
        (Annotated[int, Gt(3)], "3", "1:4: a: must be above 3, got `3`"),
        (Annotated[int, Ge(3)], "2", "1:4: a: must be at least 3, got `2`"),
        (Annotated[int, Lt(3)], "3", "1:4: a: must be below 3, got `3`"),
        (Annotated[float, Le(0.5)], "0.75", "1:4: a: must be at most 0.5, got `0.75`"),
        (Annotated[int, MultipleOf(5)], "7", "1:4: a: must be a multiple of 5"),
        (Annotated[str, Len(3)], "ab", "1:4: a: must have a length of at least 3, got 2"),
        (Annotated[str, Len(0, 3)], "abcd", "1:4: a: must have a length of at most 3, got 4"),
        (Annotated[list[int], Len(1)], "[]", "1:4: a: must have a length of at least 1, got 0"),
        (Annotated[list[int], Len(0, 1)], "[1, 2]", "1:4: a: must have a length of at most 1, got 2"),
        (Annotated[int, Checked(odd)], "4", "1:4: a: must be odd, got `4`"),
        (Annotated[int, AfterValidator(odd)], "4", "1:4: a: must be odd, got `4`"),
        (Annotated[int, AfterValidator(asserted)], "4", "1:4: a: four is unlucky"),
        (float, "x", "1:4: a: not a number: got `x`"),
        (str, "true", '1:4: a: not text: write "true", got `true`'),
        (str, "[a]", "1:4: a: not text: got a list"),
        (list[int], "", "1:3: a: not a list: got nothing"),
        (bool, "maybe", "1:4: a: not true or false: got `maybe`"),
        (Literal["only"], "onyl", "1:4: a: not `only`: got `onyl`, did you mean `only`?"),
        (Literal[1, 2], "3", "1:4: a: not one of `1`, `2`: got `3`"),
        (Literal["x", False], "y", "1:4: a: not one of `x`, `false`: got `y`"),
        (bytes, "3", "1:4: a: must be a valid bytes"),
    ],
)
def test_each_kind_of_error_is_said_in_our_words(kind: Any, value: str, expected: str) -> None:
    assert mistakes(kind, value) == [expected]


def test_a_wrong_key_of_a_free_map_is_pointed_to_itself() -> None:
    assert mistakes(dict[Annotated[str, Len(3)], int], "{ab: 1}") == ["1:5: must have a length of at least 3, got 2"]


@table(
    ("value", "expected"),
    [
        ("x", "1:4: a: not a whole number or `auto` or a map of keys: got `x`"),
        ("atuo", "1:4: a: not a whole number or `auto` or a map of keys: got `atuo`, did you mean `auto`?"),
        ("0", "1:4: a: must be at least 1, got `0`"),
        ("{kind: square, side: x}", "1:25: a.side: not a whole number: got `x`"),
        ("{kind: square, size: 1, side: 1}", "1:19: unknown key `size`, did you mean `side`?"),
    ],
)
def test_of_a_union_the_alternative_that_was_meant_is_reported(value: str, expected: str) -> None:
    assert mistakes(Annotated[int, Ge(1)] | Literal["auto"] | Square, value) == [expected]
