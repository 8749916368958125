"""
A call of which nobody knows whether it happened is not called worth repeating, unless repeating it does no harm.
"""

from typing import Any

from guardrails import Approve, Duplicates, MemorySink, Policy, Retryable, Tool
from guardrails.core.values.errors import AMBIGUOUS
from guardrails.core.values.types import Outcome
from tests.core.guards.calls import gives, said
from tests.replaying import replay
from tests.tables import table


LATE, RESET = TimeoutError("late"), ConnectionError("connection reset by peer")
KINDS: Any = sorted(AMBIGUOUS)
ACTORS = ("send_email", "create_issue", "mcp__linear__create_issue", "bookFlight", "makePayment", "fs/add_row")


def told(tool: Tool, error: object) -> Any:
    session = Policy([Retryable()], tools=[tool], by_name=True).session("s")
    return session.complete(session.decide(tool.name, {"a": 1}), error)


@table(("declared", "errors", "retryable"), [
    *(({"name": name}, [LATE, RESET], True) for name in ("search_hotels", "geocode", "mcp__a__list_x")),
    *(({"name": name}, [LATE, RESET], False) for name in ACTORS),
    ({}, [Outcome(error_type=kind, error_message="no") for kind in KINDS], False),
    # A declaration says more than a name.
    *((declared, [LATE], True) for declared in (
        {"idempotent": True}, {"read_only": True}, {"repeats": "evidence"}, {"retryable": True},
        {"read_only": False, "idempotent": True},
    )),
    *((declared, [LATE], False) for declared in (
        {"idempotent": False}, {"read_only": False}, {"idempotent": False, "retryable": True},
    )),
])  # fmt: skip
def test_what_acts_is_checked_first_and_what_only_looks_is_tried_again(
    declared: Any, errors: list[object], retryable: bool
) -> None:
    for error in errors:
        envelope = told(Tool(**{"name": "send_email", **declared}), error)
        hint = envelope.next_action_hint or ""
        assert (envelope.retryable, "may have happened" in hint) == (retryable, not retryable)
        if not retryable:
            assert said(envelope, "next_action", "max_retries_remaining") == ("ask_user", 0)
            assert "again" not in hint.partition("before")[0]


def test_what_a_person_has_to_approve_acts_whatever_its_name() -> None:
    policy = Policy(
        [Retryable(), Approve(tools=("launch*",))], tools=[Tool(name="launch"), Tool(name="launched", read_only=True)]
    )
    session = policy.session("s", approver=lambda one: True)

    assert session.call("launch", {}, gives(LATE)).retryable is False
    assert session.call("launched", {}, gives(LATE)).retryable is True
    assert Policy([Retryable()], by_name=True).session("s").call("launch", {}, gives(LATE)).retryable is True


@table(("message", "unknown"), [
    ("The user doesn't want to proceed with this tool use.", False), ("The tool use was rejected by the user", False),
    ("User declined.", False), ("operation was cancelled", True), ("the user cancelled the request", True),
])  # fmt: skip
def test_what_a_person_did_not_let_run_did_not_happen(message: str, unknown: bool) -> None:
    envelope = told(Tool(name="edit_file"), Outcome(error_type="cancelled", error_message=message))
    assert ("may have happened" in (envelope.next_action_hint or "")) is unknown
    assert (envelope.retryable, envelope.next_action) == (False, "ask_user")


def test_once_it_was_checked_the_same_call_may_be_made_again() -> None:
    policy = Policy([Duplicates(), Retryable()], by_name=True)
    session = policy.session("s")

    session.call("send_email", {}, gives(LATE))
    refused = session.call("send_email", {}, gives(LATE))
    assert (refused.code, refused.retryable) == ("duplicates.window", False)
    assert "may have happened" in (refused.message or "")
    session.call("list_sent", {}, lambda tool, arguments: [])
    assert session.call("send_email", {}, lambda tool, arguments: "sent").ok


@table("tool", ["send_email", "search_hotels"])
def test_a_call_that_nobody_ended_is_told_when_it_is_made_again(tool: str) -> None:
    now, sink = [1_800_000_000.0], MemorySink()
    policy = Policy([Retryable(), Approve(tools=("pay_*",), expires=60.0)], by_name=True)
    session = policy.session("s", clock=lambda: now[0], records=sink)

    def again(name: str) -> str:
        now[0] += 1_000
        return session.call(name, {}, lambda *_: "done", id="2").next_action_hint or ""

    session.decide(tool, {}, id="1")
    assert ("may have happened twice" in again(tool)) is (tool == "send_email")
    assert again(tool) == ""
    session.decide("pay_rent", {}, id="1")
    # Nobody approved it, so it never ran.
    assert "happened" not in again("pay_rent") + again("pay_rent")
    assert all(one.same for one in replay(policy.chain, sink.records))
