"""
Which run of an agent the call of an MCP client belongs to.
"""

import asyncio

from types import SimpleNamespace
from typing import Any

import pytest

from tests.tables import table


pytest.importorskip("mcp")

from mcp.server.auth.provider import AccessToken
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from guardrails import Budget, Denials, Duplicates, Policy
from guardrails.mcp.answers import RUN
from guardrails.mcp.guarding import Guarding
from guardrails.mcp.runs import IDLE_S, PROCESS, STUCK_S, Run, run_of
from tests.conftest import FakeClock


OWN = Run(PROCESS, named=False)
STRANGER = Run(None, named=False)


def token(subject: str, client: str = "app") -> AccessToken:
    return AccessToken(token="t", client_id=client, scopes=[], subject=subject)


def over_http(session: str | None = None) -> Any:
    return SimpleNamespace(headers={} if session is None else {"mcp-session-id": session})


def test_the_run_that_a_client_names_is_the_session() -> None:
    assert run_of({RUN: "trip-42"}, None) == Run("trip-42", named=True)
    assert run_of({RUN: 42}, None, request=over_http("s")) == Run("42", named=True)


def test_nobody_gets_into_the_run_of_another_who_is_authenticated() -> None:
    runs = [
        run_of(meta, who)
        for meta in ({}, {RUN: "trip-42"})
        for who in (token("anna"), token("ben"), token("anna", "b"))
    ]
    assert len({run.name for run in runs} | {"trip-42", PROCESS}) == 8
    assert run_of({}, token("anna")) == runs[0]
    assert [run.named for run in runs] == [False] * 3 + [True] * 3


def test_a_process_of_ones_own_is_one_run_and_strangers_over_http_are_none() -> None:
    assert run_of(None, None) == OWN
    assert run_of({}, None, request=over_http()) == STRANGER
    assert run_of({}, None, request=over_http("s-1")) == Run("s-1", named=False)


def served(guarding: Guarding, run: Run, times: int = 1) -> list[bool]:
    async def listing() -> list[Any]:
        return []

    async def send(_: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text="found")])

    async def whole() -> list[bool]:
        asked = CallToolRequestParams(name="search", arguments={})
        return [(await guarding.serve(asked, run, listing, send)).is_error for _ in range(times)]

    return asyncio.run(whole())


def test_calls_that_name_no_run_are_of_one_until_none_came_for_a_while(clock: FakeClock) -> None:
    guarding = Guarding(Policy([Budget(max_calls=2)]), clock=clock)
    assert served(guarding, OWN, 3) == [False, False, True]
    clock.advance(IDLE_S)
    assert served(guarding, OWN, 1) == [True]
    clock.advance(IDLE_S + 1)
    assert served(guarding, OWN, 1) == [False]


@table("run", [OWN, run_of({}, token("anna")), Run("s-1", named=False)])
def test_a_model_that_was_stuck_leaves_the_server_to_the_next_question(run: Run, clock: FakeClock) -> None:
    guarding = Guarding(Policy([Duplicates(), Denials()]), clock=clock)

    def stuck() -> list[bool]:
        refused = []
        for _ in range(6):
            clock.advance(2)
            refused += served(guarding, run)
        return refused

    assert stuck() == [False] + [True] * 5
    clock.advance(STUCK_S + 1)
    assert stuck() == [False] + [True] * 5


def test_each_call_of_a_stranger_is_a_session_of_its_own() -> None:
    assert served(Guarding(Policy([Budget(max_calls=1)])), STRANGER, 3) == [False, False, False]
