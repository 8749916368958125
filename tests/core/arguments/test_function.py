"""
Function signatures as definitions, and their docstrings.
"""

import functools
import inspect

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import yaml

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from guardrails.core.arguments import arguments_of
from guardrails.core.arguments.typed import FunctionArguments, descriptions
from guardrails.core.values.errors import PolicyError
from tests.tables import table


if TYPE_CHECKING:
    from nowhere import Context  # type: ignore[import-not-found]


SENTINEL = object()


class Guest(BaseModel):
    name: str


def search(
    city: str,
    limit: Annotated[int, Field(ge=1, description="from the annotation")] = 10,
    *,
    day: date | None = None,
    guest: Guest | None = None,
) -> dict[str, Any]:
    """
    Find hotels.

    Args:
        city: Where to look.
        limit: from the docstring
    """
    return locals()


def test_a7_the_schema_comes_from_signature_annotations_and_docstring() -> None:
    assert arguments_of(search).schema() == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to look."},
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "from the annotation"},
            "day": {"anyOf": [{"format": "date", "type": "string"}, {"type": "null"}], "default": None},
            "guest": {"anyOf": [{"$ref": "#/$defs/Guest"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"Guest": {"properties": {"name": {"type": "string"}}, "required": ["name"], "type": "object"}},
    }


def test_the_function_gets_the_types_it_asks_for_and_its_defaults_so_that_equal_calls_are_equal() -> None:
    check = arguments_of(search).check
    made = {"city": "x", "limit": 3, "day": date(2025, 1, 1), "guest": Guest(name="A")}
    assert check({"city": "x", "limit": "3", "day": "2025-01-01", "guest": {"name": "A"}}) == (made, ())
    assert check({"city": "x"}) == check({"city": "x", "limit": 10}) == check({"city": "x", "day": None})
    assert list(check({"city": "x"})[0]) == ["city", "limit", "day", "guest"]  # type: ignore[call-overload]


def positional(
    first: int, second: str = "x", /, third: float = 1.5, *rest: int, last: bool = False, **more: int
) -> Any:
    return first, second, third, rest, last, more


def gap(first: int, hole: Any = SENTINEL, last: int = 3, /) -> Any:
    return first, hole, last


@dataclass
class Stay:
    day: date


@table(("function", "sent", "result"), [
    (positional, {"first": 1}, (1, "x", 1.5, (), False, {})),
    (positional, {"first": "1", "third": 2, "rest": ["3", 4], "last": True}, (1, "x", 2.0, (3, 4), True, {})),
    (positional, {"first": 1, "a": "5", "b": 6}, (1, "x", 1.5, (), False, {"a": 5, "b": 6})),
    (Stay, {"day": "2025-01-01"}, Stay(date(2025, 1, 1))), (gap, {"first": 1, "last": 2}, (1, SENTINEL, 2)), (gap, {"first": 1, "hole": 5}, (1, 5, 3)),
])  # fmt: skip
def test_any_kind_of_parameter_can_be_called(function: Callable[..., Any], sent: dict[str, Any], result: Any) -> None:
    arguments = FunctionArguments(function)
    coerced, problems = arguments.check(sent)
    args, kwargs = arguments.bind(coerced)  # type: ignore[arg-type]
    assert problems == ()
    assert function(*args, **kwargs) == result
    assert arguments.check(arguments.named(args, kwargs))[1] == ()


class Hotels:
    """
    Callables of each kind, each with the same parameter.
    """

    def method(self, city: str) -> str:
        return city

    @classmethod
    def of_class(cls, city: str) -> str:
        return city

    __call__ = method

    async def later(self, city: str) -> str:
        return city


@table("function", [
    Hotels.method, Hotels().method, Hotels.of_class, Hotels(), Hotels().later,
    lambda city: city, functools.partial(search, limit=3, day=None, guest=None),
    functools.partial(functools.partial(positional, 1), "x"),
])  # fmt: skip
def test_any_callable_will_do(function: Callable[..., Any]) -> None:
    arguments = arguments_of(function)
    assert next(iter(arguments.schema()["properties"])) in {"city", "third"}
    assert arguments.check({"city": "x"} if "city" in arguments.schema()["properties"] else {})[1] == ()


def test_what_a_partial_has_set_the_model_cannot_see_or_change() -> None:
    arguments = arguments_of(functools.partial(search, guest=Guest(name="secret")))
    assert "secret" not in str(arguments.schema())
    assert "guest" not in arguments.schema()["properties"]
    assert [p.kind for p in arguments.check({"city": "x", "guest": None})[1]] == ["unknown"]


def with_context(context: "Context", city: str) -> Any:
    return (context, city)


class Foreign:
    pass


def foreign(context: Foreign) -> None: ...


UNREAD = "the arguments of `{}` cannot be read: "


@table(("function", "message"), [
    (with_context, f"{UNREAD.format('with_context')}name 'Context' is not defined; .* `functools.partial`"),
    (foreign, f"{UNREAD.format('foreign')}.*Foreign.*; a parameter that the host passes is bound by"),
    (int, f"{UNREAD.format('int')}no signature found"),
    *((odd, "a pydantic model, a function or a JSON Schema") for odd in (3, "x", None, [1])),
])  # fmt: skip
def test_what_defines_no_arguments_is_refused_when_made(function: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        arguments_of(function)


@table("docstring", yaml.safe_load(Path(__file__).with_name("docstrings.yaml").read_text()).values())
@table("as_written", [str, inspect.cleandoc])
def test_each_style_of_docstrings_gives_the_same_descriptions(docstring: str, as_written: Callable[[str], str]) -> None:
    made = descriptions(as_written(docstring))
    assert {name: made.get(name) for name in ("city", "limit", "tags", "more", "silent")} == {
        "city": "Where to look: a city or a district.",
        "limit": "At most so many. A second paragraph.",
        "tags": "Words.",
        "more": "The rest.",
        "silent": None,
    }


@given(st.text("Args:\n -*()param:xParameters", max_size=80))
def test_no_docstring_makes_it_raise(docstring: str) -> None:
    assert all(descriptions(docstring).values())
