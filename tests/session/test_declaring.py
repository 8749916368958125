"""
What a host says of its tools.
"""

from typing import Any

import pytest

from guardrails import Policy, PolicyError, Rule, Session, Tool, Validation


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def checked(**options: Any) -> Policy:
    return Policy([Validation()], **options)


def ok(tool: str, arguments: Any) -> str:
    return "ok"


def plan(session: Session, name: str) -> Tool:
    return session.ledger.chain.plan(name).tool


def test_arguments_are_checked_by_the_schema_of_the_host() -> None:
    session = checked().session("s")
    assert session.call("book", {}, ok).ok
    session.calls.declare(Tool(name="book", parameters=SCHEMA))
    assert session.call("book", {}, ok).status == "validation_error"
    assert session.call("book", {"city": "Kyoto"}, ok).ok


def test_a_function_is_declared_by_its_signature() -> None:
    def book(city: str) -> None:
        """Book a room."""

    session = checked().session("s")
    session.calls.declare(book)
    assert session.call("book", {}, ok).status == "validation_error"
    assert plan(session, "book").description == "Book a room."


def test_hints_count_and_what_the_policy_says_stands_above_them() -> None:
    policy = checked(
        tools=[Tool(name="own", read_only=False)],
        rules=[Rule(match="ruled", declared={"timeout": 5.0, "read_only": True})],
    )
    session = policy.session("s")
    session.calls.declare(*(Tool(name=name, read_only=True, timeout=9) for name in ("own", "free")))
    session.calls.declare(Tool(name="ruled", timeout=9, idempotent=True))
    assert [plan(session, name).read_only for name in ("own", "free", "ruled")] == [False, True, True]
    assert [plan(session, name).timeout for name in ("own", "free", "ruled")] == [9, 9, 5]
    assert plan(session, "ruled").idempotent is True


def test_it_is_of_this_session_and_its_children_and_of_no_other() -> None:
    policy = checked()
    session = policy.session("s")
    session.calls.declare(Tool(name="book", parameters=SCHEMA, read_only=True))
    with session.child("sub") as child:
        assert child.call("book", {}, ok).status == "validation_error"
        assert plan(child, "book").read_only is True
        child.calls.declare(Tool(name="book", parameters=SCHEMA, read_only=False))
        assert plan(child, "book").read_only is False
    assert plan(session, "book").read_only is True
    assert policy.session("other").call("book", {}, ok).ok


def test_a_tool_that_is_not_valid_is_refused_and_nothing_is_declared() -> None:
    session = checked().session("s")
    with pytest.raises(PolicyError):
        session.calls.declare(Tool(name="good", read_only=True), Tool(name="bad", parameters=3))
    assert plan(session, "good").read_only is None


def test_a_tool_whose_schema_is_not_valid_is_declared_and_not_checked() -> None:
    session = checked().session("s")
    session.calls.declare(Tool(name="strange", read_only=True, parameters={"type": "no such type"}))
    assert plan(session, "strange").read_only is True
    assert session.call("strange", {"any": 1}, lambda *_: "done").ok
