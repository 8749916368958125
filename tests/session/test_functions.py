"""
Tools as a host declares them, and Python functions behind a session.
"""

from __future__ import annotations

import functools
import inspect
import typing

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest

from guardrails import Approve, Budget, CallDenied, Duplicates, Envelope, Policy, Session, Tool
from guardrails.core.chain import Rule
from guardrails.core.envelope import CallFailed
from guardrails.core.guards.validation import Validation
from guardrails.errors import SessionError
from tests.session.conftest import ok
from tests.tables import table


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SMALL = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 10}}, "required": ["amount"]}


def checked(**options: Any) -> Policy:
    return Policy([Validation()], **options)


def plan(session: Session, name: str) -> Tool:
    return session.ledger.chain.plan(name).tool


# What a host declares


def test_arguments_are_checked_by_the_host_s_schema_or_function_in_its_session_and_its_children() -> None:
    def pay(amount: int) -> None:
        """Pay somebody."""

    policy = checked()
    session = policy.session("s")
    assert session.call("book", {}, ok).ok
    session.calls.declare(Tool(name="book", parameters=SCHEMA, read_only=True), pay)
    assert [session.call(name, {}, ok).status for name in ("book", "pay")] == ["validation_error"] * 2
    assert session.call("book", {"city": "Kyoto"}, ok).ok
    assert plan(session, "pay").description == "Pay somebody."
    with session.child("sub") as child:
        assert child.call("book", {}, ok).status == "validation_error"
        child.calls.declare(Tool(name="book", parameters=SCHEMA, read_only=False))
        assert [plan(one, "book").read_only for one in (child, session)] == [False, True]
    assert policy.session("other").call("book", {}, ok).ok


def test_hints_count_and_what_the_policy_says_stands_above_them() -> None:
    rules = [Rule(match="ruled", declared={"timeout": 5.0, "read_only": True})]
    session = checked(tools=[Tool(name="own", read_only=False)], rules=rules).session("s")
    session.calls.declare(*(Tool(name=name, read_only=True, timeout=9) for name in ("own", "free")))
    session.calls.declare(Tool(name="ruled", timeout=9, idempotent=True))
    plans = [plan(session, name) for name in ("own", "free", "ruled")]
    assert [(one.read_only, one.timeout, one.idempotent) for one in plans] == [
        *((False, 9, None), (True, 9, None), (True, 5, True))
    ]


def test_a_label_reaches_the_tool_and_tells_no_call_from_another() -> None:
    given: list[Any] = []
    policy = Policy([Duplicates(), Approve(tools=("run",))], tools=[Tool(name="run", labels=("reason",))])
    session = policy.session("s")

    def run(command: str, reason: str) -> str | None:
        asked = {"command": command, "reason": reason}
        return session.call("run", asked, lambda _, arguments: given.append(arguments), id=command).code

    assert run("ls", "look") == "approve.pending"
    session.approve("ls")
    assert [run("ls", "look again"), run("ls", "look")] == [None, "duplicates.window"]
    assert run("pwd", "look") == "approve.pending"
    assert given == [{"command": "ls", "reason": "look again"}], "the tool is given them all the same"


# What a wrapped function says of itself


def search(query: str, n: int = 10) -> list[dict[str, int]]:
    """
    Find things.
    """
    return [{query: n}]


def numbers(n: int) -> Iterator[int]:
    yield from range(n)


async def streamed(n: int) -> AsyncIterator[str]:
    yield str(n)


@table(("function", "shown", "value"), [
    (search, "(query: str, n: int = 10)", list[dict[str, int]]), (numbers, "(n: int)", list[int]), (streamed, "(n: int)", list[str]),
    (functools.partial(functools.partial(search, n=2)), "(query: str)", list[dict[str, int]]),
])  # fmt: skip
def test_the_signature_has_the_parameters_and_what_comes_back(function: Any, shown: str, value: Any) -> None:
    session = Policy([Budget(max_calls=90)]).session("s")
    returns: Literal["json", "envelope", "value"]
    for returns, result in (("json", str), ("envelope", Envelope), ("value", value)):
        wrapped = session.wrap(function, returns=returns)
        signature = inspect.signature(wrapped)
        assert str(signature.replace(return_annotation=signature.empty)) == shown
        assert typing.get_type_hints(wrapped)["return"] == signature.return_annotation == result
        assert inspect.iscoroutinefunction(wrapped) == (function is streamed)
    assert session.wrap(function, name="look_up").__name__ == "look_up"
    assert session.wrap(numbers, returns="value")(3) == [0, 1, 2]
    assert isinstance(session.wrap(search)("x"), str)
    assert session.wrap(search).__doc__ == "Find things."


# What a wrapped function does


def pay(amount: int) -> int:
    return amount


def guarded(clock: Any, **tool: Any) -> Session:
    tools = [Tool(**tool)] if tool else []
    return Policy([Budget(max_calls=50), Validation()], tools=tools).session("s", clock=clock)


def test_each_name_is_one_function_whose_parameters_are_the_policys_if_it_has_any(clock: Any) -> None:
    class Other:
        def pay(self, city: str) -> Any:
            return city

    session = guarded(clock)
    first = session.wrap(pay, returns="value")
    with pytest.raises(SessionError, match="`pay` is another function in this session already"):
        session.wrap(Other().pay)
    other = session.wrap(Other().pay, name="pay_city", returns="value")
    assert (first(2), other("Kyoto")) == (2, "Kyoto")
    ruled = guarded(clock, name="pay", parameters=SMALL)
    wrapped = ruled.wrap(pay, returns="envelope")
    assert (wrapped(5).value, wrapped(50).status) == (5, "validation_error")
    assert ruled.call("pay", {"amount": 50}, ok).status == "validation_error"


def test_where_the_value_is_wanted_what_went_wrong_is_raised(clock: Any) -> None:
    def divide(a: int, b: int) -> float:
        return a / b

    def fails() -> Any:
        return {"isError": True, "content": [{"type": "text", "text": "no such city"}]}

    session = guarded(clock)
    wrapped: Any = session.wrap(divide, returns="value")
    assert wrapped(4, b=2) == 2.0
    with pytest.raises(ZeroDivisionError):
        wrapped(1, 0)
    with pytest.raises(CallDenied, match=r"^validation\.arguments: ") as refused:
        wrapped("much", 1)
    assert refused.value.envelope.status == "validation_error"
    with pytest.raises(TypeError):
        wrapped(1, 2, 3)
    with pytest.raises(CallFailed, match=r"^[a-z_]+: no such city$") as failed:
        session.wrap(fails, returns="value")()
    assert failed.value.envelope.status == "error"
