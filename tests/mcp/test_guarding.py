"""
Which run of an agent the call of an MCP client belongs to.
"""

import asyncio

from types import SimpleNamespace
from typing import Any

import pytest


pytest.importorskip("mcp")

from mcp.server.auth.provider import AccessToken
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from guardrails import Budget, Policy
from guardrails.mcp.answers import RUN
from guardrails.mcp.guarding import IDLE_S, PROCESS, Guarding, run_of
from tests.conftest import FakeClock


def token(subject: str, client: str = "app") -> AccessToken:
    return AccessToken(token="t", client_id=client, scopes=[], subject=subject)


def over_http(session: str | None = None) -> Any:
    return SimpleNamespace(headers={} if session is None else {"mcp-session-id": session})


def test_the_run_that_a_client_names_is_the_session() -> None:
    assert run_of({RUN: "trip-42"}, None) == "trip-42"
    assert run_of({RUN: 42}, None, request=over_http("s")) == "42"


def test_nobody_gets_into_the_run_of_another_who_is_authenticated() -> None:
    runs = [
        run_of(meta, who)
        for meta in ({}, {RUN: "trip-42"})
        for who in (token("anna"), token("ben"), token("anna", "b"))
    ]
    assert len({*runs, "trip-42", PROCESS}) == 8
    assert run_of({}, token("anna")) == runs[0]


def test_a_process_of_ones_own_is_one_run_and_strangers_over_http_are_none() -> None:
    assert run_of(None, None) == PROCESS
    assert run_of({}, None, request=over_http()) is None
    assert run_of({}, None, request=over_http("s-1")) == "s-1"


def served(guarding: Guarding, run: str | None, times: int) -> list[bool]:
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
    assert served(guarding, PROCESS, 3) == [False, False, True]
    clock.advance(IDLE_S)
    assert served(guarding, PROCESS, 1) == [True]
    clock.advance(IDLE_S + 1)
    assert served(guarding, PROCESS, 1) == [False]


def test_each_call_of_a_stranger_is_a_session_of_its_own() -> None:
    assert served(Guarding(Policy([Budget(max_calls=1)])), None, 3) == [False, False, False]


def test_a_session_that_is_given_is_that_of_all_runs() -> None:
    guarding = Guarding(Policy([Budget(max_calls=2)]).session("s"))
    assert [served(guarding, run, 1) for run in ("a", None, PROCESS)] == [[False], [False], [True]]
