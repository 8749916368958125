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

from guardrails import Budget, Denials, Duplicates, Growth, Policy
from guardrails.mcp.calls import IDLE_S, PROCESS, RUN, STUCK_S, Guarding, Run, run_of
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


def served(guarding: Guarding, run: Run, times: int = 1, *, first: int | None = None) -> list[bool]:
    """
    Which of some calls of *run* were refused: equal ones, or *first* and the numbers after it.
    """

    async def listing() -> list[Any]:
        return []

    async def send(_: Any) -> Any:
        return {"content": [{"type": "text", "text": "found"}]}

    async def whole() -> list[bool]:
        numbers = [0] * times if first is None else range(first, first + times)
        asked = [{"name": "search", "arguments": {"n": n}} for n in numbers]
        return ["isError" in await guarding.serve(one, run, listing, send) for one in asked]

    return asyncio.run(whole())


def test_calls_that_name_no_run_are_of_one_until_none_came_for_a_while(clock: FakeClock) -> None:
    guarding = Guarding(Policy([Budget(max_calls=2)]), clock=clock)
    assert served(guarding, OWN, 3) == [False, False, True]
    clock.advance(IDLE_S)
    assert served(guarding, OWN, 1) == [True]
    clock.advance(IDLE_S + 1)
    assert served(guarding, OWN, 1) == [False]


@table("run", [OWN, run_of({}, token("anna")), Run("s-1", named=False), Run("desk", named=True)])
def test_a_model_that_was_stuck_leaves_the_tools_to_the_next_question(run: Run) -> None:
    clock = FakeClock()
    guarding = Guarding(Policy([Duplicates(), Denials(max_turns_in_a_row=2), Budget(max_calls=3)]), clock=clock)
    stuck = []
    for _ in range(5):
        clock.advance(2)
        stuck += served(guarding, run)
    assert stuck == [False, True, True, True, True]
    assert served(guarding, run, 2, first=1) == [True, True]
    clock.advance(STUCK_S + 1)
    assert served(guarding, run, 3, first=1) == [False, False, True]
    clock.advance(STUCK_S + 1)
    # What is used up stays so.
    assert served(guarding, run, 1, first=9) == [True]


def test_a_client_that_was_too_fast_is_served_again_after_a_minute(clock: FakeClock) -> None:
    guarding = Guarding(Policy([Growth(max_calls_per_second=3)]), clock=clock)
    assert served(guarding, OWN, 6, first=1) == [False] * 3 + [True] * 3
    clock.advance(STUCK_S + 1)
    assert served(guarding, OWN, 3, first=7) == [False] * 3


def test_each_call_of_a_stranger_is_a_session_of_its_own() -> None:
    assert served(Guarding(Policy([Budget(max_calls=1)])), STRANGER, 3) == [False, False, False]
