"""
Which run of an agent the call of an MCP client belongs to, and what its client reads: valid for what a tool promises.
"""

import asyncio
import json

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import FakeClock
from tests.tables import table


pytest.importorskip("mcp")

from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from guardrails import Budget, Denials, Duplicates, Envelope, Growth, Policy
from guardrails.integrations.mcp import run_of_request as run_of
from guardrails.mcp import calls as module
from guardrails.mcp.calls import ENVELOPE, NOTES, PROCESS, RUN, UNKNOWN, Guarding, Run, answered, refused

from .server import TOOLS


OWN, STRANGER, SESSION = Run(PROCESS, named=False), Run(None, named=False), Run("s-1", named=False)


def token(subject: str, client: str = "app") -> AccessToken:
    return AccessToken(token="t", client_id=client, scopes=[], subject=subject)


def over_http(**headers: str) -> Any:
    return SimpleNamespace(headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_a_run_is_the_one_that_a_client_names_and_nobody_gets_into_that_of_another() -> None:
    assert run_of({RUN: "trip-42"}, None, None) == Run("trip-42", named=True)
    assert run_of({RUN: 42}, None, over_http(mcp_session_id="s")) == Run("42", named=True)
    people = (token("anna"), token("ben"), token("anna", "b"))
    runs = [run_of(meta, who, None) for meta in ({}, {RUN: "trip-42"}) for who in people]
    assert len({run.name for run in runs} | {"trip-42", PROCESS}) == 8
    assert run_of({}, token("anna"), None) == runs[0]
    assert [run.named for run in runs] == [False] * 3 + [True] * 3
    # A process of one's own is one run, and strangers over HTTP are none.
    alone = [run_of({}, None, None), run_of(None, None, over_http()), run_of({}, None, over_http(mcp_session_id="s-1"))]
    assert alone == [OWN, STRANGER, SESSION]


def results(guarding: Guarding, run: Run, *calls: dict[str, Any], tool: str = "search") -> list[Any]:
    """
    What the client of *run* reads of each of *calls*, which a server answers by one word.
    """

    async def listing() -> list[Any]:
        return []

    async def send(_: Any) -> Any:
        return {"content": [{"type": "text", "text": "found"}]}

    async def whole() -> list[Any]:
        return [await guarding.serve({"name": tool, "arguments": one}, run, listing, send) for one in calls]

    return asyncio.run(whole())


def served(guarding: Guarding, run: Run, times: int = 1, *, first: int | None = None) -> list[bool]:
    """
    Which of some calls of *run* were refused: equal ones, or *first* and the numbers after it.
    """
    numbers = [0] * times if first is None else range(first, first + times)
    return ["isError" in one for one in results(guarding, run, *({"n": n} for n in numbers))]


def test_calls_that_name_no_run_are_of_one_until_none_came_for_a_while(clock: FakeClock) -> None:
    guarding = Guarding(Policy([Budget(max_calls=2)]), clock=clock)
    assert served(guarding, OWN, 3) == [False, False, True]
    clock.advance(module.IDLE_S)
    assert served(guarding, OWN) == [True]
    clock.advance(module.IDLE_S + 1)
    assert served(guarding, OWN) == [False]
    # Each call of a stranger is a session of its own.
    assert served(Guarding(Policy([Budget(max_calls=1)])), STRANGER, 3) == [False, False, False]


@table("run", [OWN, run_of({}, token("anna"), None), SESSION, Run("desk", named=True)])
def test_a_model_that_was_stuck_or_too_fast_leaves_the_tools_to_the_next_question(run: Run) -> None:
    clock = FakeClock()
    guarding = Guarding(Policy([Duplicates(), Denials(max_turns_in_a_row=2), Budget(max_calls=3)]), clock=clock)
    stuck = []
    for _ in range(5):
        clock.advance(2)
        stuck += served(guarding, run)
    assert stuck == [False, True, True, True, True]
    assert served(guarding, run, 2, first=1) == [True, True]
    clock.advance(module.STUCK_S + 1)
    assert served(guarding, run, 3, first=1) == [False, False, True]
    clock.advance(module.STUCK_S + 1)
    # What is used up stays so.
    assert served(guarding, run, 1, first=9) == [True]
    fast = Guarding(Policy([Growth(max_calls_per_second=3)]), clock=clock)
    assert served(fast, run, 6, first=1) == [False] * 3 + [True] * 3
    clock.advance(module.STUCK_S + 1)
    assert served(fast, run, 3, first=7) == [False] * 3


@table("error", [TimeoutError(), MCPError(CONNECTION_CLOSED, "gone"), MCPError(REQUEST_TIMEOUT, "late")])
def test_a_call_that_a_server_was_lost_in_is_not_made_again(error: Exception) -> None:
    async def send(_: Any) -> Any:
        raise error

    async def listing() -> Any:
        return [{**TOOLS[0], "name": "pay", "annotations": {"destructiveHint": True}}]

    guarding = Guarding(Policy())
    with pytest.raises(type(error)):
        asyncio.run(guarding.serve({"name": "pay"}, OWN, listing, send))
    assert "call.uncertain" in json.dumps(results(guarding, OWN, {}, tool="pay"))


# What a client reads

NUMBER = {"type": "integer"}
ROWS = TOOLS[3]["outputSchema"]
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


def result(structured: Any, text: str = "some text", *more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *more], "structuredContent": structured}


@table(("schema", "there"), [(None, True), (ROWS, False), (UNKNOWN, False)])
def test_a_note_stands_in_the_structured_content_where_it_may(schema: dict[str, Any] | None, there: bool) -> None:
    one: dict[str, Any] = {"rows": []}
    envelope, given = Envelope.success(one), result(one)
    assert answered(envelope, given, one, schema) is given
    envelope.limit("that was the last one", "write your answer", "budget.max_calls")
    made = answered(envelope, given, one, schema)
    assert (NOTES in made["structuredContent"]) is there
    assert made["_meta"] == {ENVELOPE: {"limit_reached": True, "limit_message": "that was the last one"}}
    note = '[guardrails] {"limit_reached":true,"limit_message":"that was the last one"}'
    assert [block["text"] for block in made["content"]] == ["some text", note]


@table(("given", "schema", "shown"), [
    ({"result": "my secret"}, {"type": "object"}, {"result": "hidden"}), ({"rows": ["my secret"]}, ROWS, None),
])  # fmt: skip
def test_what_a_guard_puts_in_place_is_shown_or_fails(given: Any, schema: Any, shown: Any) -> None:
    made = answered(Envelope.success("hidden"), result(given, "my secret"), given, schema)
    assert "secret" not in json.dumps(made)
    assert made.get("structuredContent") == shown
    assert made.get("isError", False) is (shown is None)


def test_a_refusal_is_one_line_and_the_envelope_beside_what_is_no_text() -> None:
    made = refused(Envelope.error("timeout", "the supplier\ndid not answer"), result({"a": 1}, "boom", IMAGE))
    line, _, below = made["content"][0]["text"].partition("\n")
    assert line == "[guardrails:timeout] the supplier did not answer"
    assert made == {"content": [made["content"][0], IMAGE], "isError": True, "_meta": {ENVELOPE: json.loads(below)}}


def test_a_limit_of_what_mcp_does_not_tell_is_named_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    Guarding(Policy([Budget(max_calls=5), Growth(max_calls_per_second=3)]))
    Guarding(Policy.load("default"))
    assert not caplog.text
    for _ in range(2):
        shared = {"user": [Budget(max_cost_usd=1)]}
        Guarding(Policy([Budget(max_turns=7, max_tokens=9), Growth(max_requests_per_second=5)], scopes=shared))
    for named in (
        "budget.max_tokens, budget.max_turns, user.budget.max_cost_usd: ",
        "growth.max_requests_per_second: ",
    ):
        assert caplog.text.count(named) == 1
