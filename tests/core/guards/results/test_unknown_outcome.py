"""
A call of which nobody knows whether it happened is not called worth repeating, unless repeating it does no harm.
"""

from typing import Any

from guardrails import Approve, Duplicates, MemorySink, Policy, Retryable, Tool
from guardrails.core.values.errors import AMBIGUOUS
from guardrails.core.values.types import Outcome
from tests.replaying import replay
from tests.tables import table


READERS = [
    "search_hotels",
    "geocode",
    "mcp__a__list_x",
]
ACTORS = [
    "send_email",
    "create_issue",
    "mcp__linear__create_issue",
    "bookFlight",
    "makePayment",
    "fs/add_row",
]


def said(tool: Tool, error: object) -> Any:
    policy = Policy([Retryable()], tools=[tool], by_name=True)
    session = policy.session("s")
    return session.complete(session.decide(tool.name, {"a": 1}), error)


@table("error", [TimeoutError("late"), ConnectionError("connection reset by peer")])
@table("name", READERS)
def test_what_only_looks_or_may_be_no_more_is_tried_again(name: str, error: Exception) -> None:
    assert said(Tool(name=name), error).retryable is True


@table("error", [TimeoutError("late"), ConnectionError("connection reset by peer")])
@table("name", ACTORS)
def test_what_acts_by_its_name_is_checked_first(name: str, error: Exception) -> None:
    envelope = said(Tool(name=name), error)
    assert (envelope.retryable, envelope.next_action, envelope.max_retries_remaining) == (False, "ask_user", 0)
    assert "may have happened" in (envelope.next_action_hint or "")
    assert "again" not in (envelope.next_action_hint or "").partition("before")[0]


@table(
    ("declared", "retryable"),
    [
        ({"idempotent": True}, True),
        ({"read_only": True}, True),
        ({"repeats": "evidence"}, True),
        ({"repeats": "evidence"}, True),
        ({"retryable": True}, True),
        ({"idempotent": False}, False),
        ({"read_only": False}, False),
        ({"read_only": False, "idempotent": True}, True),
        ({"idempotent": False, "retryable": True}, False),
    ],
)
def test_a_declaration_says_more_than_a_name(declared: dict[str, Any], retryable: bool) -> None:
    assert said(Tool(name="send_email", **declared), TimeoutError("late")).retryable is retryable


def test_what_a_person_has_to_approve_acts_whatever_its_name() -> None:
    policy = Policy(
        [Retryable(), Approve(tools=("launch*",))], tools=[Tool(name="launch"), Tool(name="launched", read_only=True)]
    )
    session = policy.session("s", approver=lambda one: True)

    def late(tool: str, arguments: Any) -> None:
        raise TimeoutError("late")

    assert session.call("launch", {}, late).retryable is False
    assert session.call("launched", {}, late).retryable is True
    assert Policy([Retryable()], by_name=True).session("s").call("launch", {}, late).retryable is True


@table("kind", sorted(AMBIGUOUS))
def test_every_kind_of_unknown_outcome_is_told(kind: Any) -> None:
    from guardrails import Outcome

    session = Policy([Retryable()], by_name=True).session("s")
    envelope = session.complete(session.decide("send_email", {}), Outcome(error_type=kind, error_message="no"))
    assert envelope.retryable is False
    assert "may have happened" in (envelope.next_action_hint or "")


@table(
    ("message", "unknown"),
    [
        ("The user doesn't want to proceed with this tool use.", False),
        ("The tool use was rejected by the user", False),
        ("User declined.", False),
        ("operation was cancelled", True),
        ("the user cancelled the request", True),
    ],
)
def test_what_a_person_did_not_let_run_did_not_happen(message: str, unknown: bool) -> None:
    envelope = said(Tool(name="edit_file"), Outcome(error_type="cancelled", error_message=message))
    assert ("may have happened" in (envelope.next_action_hint or "")) is unknown
    assert (envelope.retryable, envelope.next_action) == (False, "ask_user")


def test_once_it_was_checked_the_same_call_may_be_made_again() -> None:
    policy = Policy([Duplicates(), Retryable()], by_name=True)
    session = policy.session("s")

    def late(tool: str, arguments: Any) -> None:
        raise TimeoutError("late")

    session.call("send_email", {}, late)
    refused = session.call("send_email", {}, late)
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
