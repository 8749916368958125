"""
What a wrapped function says of itself, to whoever reads its signature.
"""

from __future__ import annotations

import functools
import inspect
import typing

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

from guardrails import Budget, Envelope, Policy, Session, Tool
from tests.tables import table


if TYPE_CHECKING:
    from nowhere import Database  # type: ignore[import-not-found]


def search(query: str, n: int = 10) -> list[dict[str, int]]:
    """
    Find things.
    """
    return [{query: n}]


async def asearch(query: str) -> list[str]:
    return [query]


def numbers(n: int) -> Iterator[int]:
    yield from range(n)


def made(n: int) -> Generator[int, None, str]:
    yield n
    return "done"


async def streamed(n: int) -> AsyncIterator[str]:
    yield str(n)


def listed(n: int) -> Iterable[int]:
    return [n]


def kept(query: str, database: Database | None = None) -> Database:
    return query


class Shop:
    """
    A shop.
    """

    def __init__(self, city: str) -> None:
        self.city = city

    def order(self, what: str, *tags: str, **more: int) -> bool:
        return bool(what)

    def __call__(self, what: str) -> int:
        """
        Ask for it.
        """
        return len(what)


@pytest.fixture
def session() -> Session:
    return Policy([Budget(max_calls=90)]).session("s")


VALUES: list[tuple[Callable[..., Any], str, Any]] = [
    (search, "(query: str, n: int = 10)", list[dict[str, int]]),
    (asearch, "(query: str)", list[str]),
    (numbers, "(n: int)", list[int]),
    (made, "(n: int)", list[int]),
    (streamed, "(n: int)", list[str]),
    (listed, "(n: int)", Iterable[int]),
    (Shop("Kyoto").order, "(what: str, *tags: str, **more: int)", bool),
    (Shop("Kyoto"), "(what: str)", int),
    (Shop, "(city: str)", Shop),
    (functools.partial(search, n=2), "(query: str)", list[dict[str, int]]),
    (functools.partial(search, "x"), "(n: int = 10)", list[dict[str, int]]),
]


@table(("function", "shown", "value"), VALUES)
def test_the_signature_has_the_parameters_and_what_comes_back(
    function: Callable[..., Any], shown: str, value: Any
) -> None:
    session = Policy([Budget(max_calls=90)]).session("s")
    returns: Literal["json", "envelope", "value"]
    for returns, result in (("json", str), ("envelope", Envelope), ("value", value)):
        wrapped = session.wrap(function, returns=returns)
        signature = inspect.signature(wrapped)
        assert str(signature.replace(return_annotation=signature.empty)) == shown
        assert signature.return_annotation == result
        hints = typing.get_type_hints(wrapped, include_extras=True)
        assert hints.pop("return") == result
        assert hints == {one.name: one.annotation for one in signature.parameters.values()}
        assert inspect.iscoroutinefunction(wrapped) == (function in (asearch, streamed))


def test_what_a_wrapped_function_returns_is_what_its_annotation_says(session: Session) -> None:
    assert session.wrap(numbers, returns="value")(3) == [0, 1, 2]
    assert session.wrap(Shop, returns="value")("Kyoto").city == "Kyoto"
    assert isinstance(session.wrap(search)("x"), str)
    assert isinstance(session.wrap(search, returns="envelope")("x", 2), Envelope)


def test_what_is_bound_is_in_neither_signature_nor_schema_nor_is_its_annotation_needed(session: Session) -> None:
    wrapped = session.wrap(functools.partial(kept, database=None))
    assert str(inspect.signature(wrapped)) == "(query: str) -> str"
    assert typing.get_type_hints(wrapped) == {"query": str, "return": str}
    spec = Tool.of(wrapped).arguments()
    assert spec is not None
    assert set(spec.schema()["properties"]) == {"query"}
    assert '"x"' in wrapped("x")


@pytest.mark.parametrize(
    ("function", "name", "doc"),
    [
        (search, "search", "Find things."),
        (functools.partial(functools.partial(search, n=1)), "search", "Find things."),
        (Shop("Kyoto"), "Shop", "A shop."),
        (Shop, "Shop", "A shop."),
        (Shop("Kyoto").order, "order", None),
    ],
)
def test_name_and_text_are_those_of_the_tool(
    function: Callable[..., Any], name: str, doc: str | None, session: Session
) -> None:
    assert (session.wrap(function).__name__, session.wrap(function).__doc__) == (name, doc)
    assert session.wrap(function, name="look_up").__name__ == "look_up"
