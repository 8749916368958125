"""
Bounds of settings, as pydantic reads them.
"""

from typing import Annotated, Any

import annotated_types
import pytest

from pydantic import TypeAdapter, ValidationError

from guardrails.core.values import bounds
from tests.tables import table


@table(
    ("name", "kind", "limit", "right", "wrong"),
    [
        ("Ge", int, 2, 2, 1),
        ("Gt", float, 2, 2.5, 2.0),
        ("Le", int, 2, 2, 3),
        ("MinLen", str, 2, "ab", "a"),
        ("MaxLen", str, 2, "ab", "abc"),
    ],
)
def test_a_bound_is_the_one_of_its_name_to_pydantic(name: str, kind: Any, limit: int, right: Any, wrong: Any) -> None:
    bound = getattr(bounds, name)(limit)
    made: TypeAdapter[Any] = TypeAdapter(Annotated[kind, bound])
    meant: TypeAdapter[Any] = TypeAdapter(Annotated[kind, getattr(annotated_types, name)(limit)])
    assert made.json_schema() == meant.json_schema()
    assert made.validate_python(right) == right
    assert bound.holds(right)
    assert not bound.holds(wrong)
    with pytest.raises(ValidationError) as said:
        made.validate_python(wrong)
    with pytest.raises(ValidationError) as expected:
        meant.validate_python(wrong)
    assert said.value.errors() == expected.value.errors()


def test_bounds_are_equal_by_kind_and_limit() -> None:
    assert bounds.Ge(1) == bounds.Ge(1)
    assert bounds.Ge(1) != bounds.Ge(2)
    assert bounds.Ge(1) != bounds.Gt(1)
    assert len({bounds.Ge(1), bounds.Ge(1), bounds.Le(1)}) == 2
    assert repr(bounds.Ge(1)) == "Ge(1)"
