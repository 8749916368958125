"""
Turning recorded sessions into cases.
"""

from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Decision, Outcome, Policy, SessionState
from guardrails.chain import Chain
from guardrails.complete import Prepared, complete
from guardrails.decide import decide
from guardrails.policy_cases import Decided, case_of, read_cases, run_case
from guardrails.policy_cases.case import Call, Case
from guardrails.readers.base import RecordedCall
from guardrails.signature import masked_result_hash, result_hash
from guardrails.tool import Tool
from guardrails.tool_call import tool_call
from guardrails.transitions import charge_response, open_turn


POLICIES = {name: Policy.load(name) for name in ("default", "strict", "observe")}
AGO = 1_700_000_000_000


def recorded(n: int, tool: str, arguments: Any, result: str | None = "ok", **more: Any) -> RecordedCall:
    return RecordedCall("test", "session 1", n, tool, arguments, result=result, **more)


def judged(chain: Chain, calls: list[RecordedCall]) -> list[Decision]:
    """
    The calls of one session decided again by their own times, as a judge of transcripts does it.
    """
    read_only, polling = {call.tool: call.read_only for call in calls}, {call.tool: call.polling for call in calls}
    chain = chain.with_tools([Tool(name=name, read_only=read_only[name], polling=polling[name]) for name in read_only])
    state, turn, decisions = SessionState(), None, []
    running: list[tuple[int, Decision, Prepared]] = []
    for n, call in enumerate(calls):
        now = max(AGO if call.ts_ms is None else call.ts_ms, state.now_ms)
        for end, decision, prepared in sorted((one for one in running if one[0] <= now), key=lambda one: one[0]):
            complete(chain, decision, prepared, state, end)
        running = [one for one in running if one[0] > now]
        if call.turn != turn:
            turn = call.turn
            open_turn(chain, state, now, 0)
            if call.tokens_in is not None:
                charge_response(chain, state, now, 20_000, call.tokens_in)
        decision = decide(chain, tool_call(call.tool, call.arguments, str(n), None), state, now)
        decisions.append(decision)
        if decision.envelope is not None:
            continue
        if not call.has_result:
            state.pending[decision.call.id, decision.call.sig].expires_ms = now
            continue
        text = call.result or ""
        evidence = result_hash(text) if call.error_type is None else masked_result_hash(text)
        prepared = Prepared(Outcome(None, call.error_type, "", None, call.retry_after_ms), None, evidence)
        running.append((now + (call.duration_ms or 0), decision, prepared))
        if not call.duration_ms:
            complete(chain, *running.pop()[1:], state, now)
    return decisions


def only_case(text: str) -> Case:
    [case] = read_cases(text, "recorded.yaml").cases
    return case


def calls_in(text: str) -> list[Call]:
    return [step for step in only_case(text).steps if isinstance(step, Call)]


def allowed(calls: list[RecordedCall]) -> str:
    return case_of(calls, [Decided("allow")] * len(calls))


LONG = "a long page " * 100
RESULTS = st.sampled_from(
    [
        "ok",
        "",
        "line 9",
        "line 10",
        LONG,
        f"{LONG}1",
        f"{LONG}2",
        "password: hunter2",
        "password: hunter3",
        "\x00\u0085\u2028 \N{GRINNING FACE} é \ud800",
        "$n: &a *b - [c]",
    ]
)
ARGUMENTS = st.sampled_from(
    [
        {},
        {"q": "hotels"},
        {"q": "hotels", "n": 1.0},
        '{"n": 1, "q": "hotels"}',
        "free text",
        '{"broken": ',
        {"password": "hunter2"},
        {"password": "hunter3"},
        {"text": f"{LONG}1"},
        {"text": f"{LONG}2"},
        {"deep": {"a": [1, {"b": [LONG]}]}},
        {"n": float("nan"), "m": 2**70},
        {LONG: 1},
    ]
)


@st.composite
def sessions(draw: st.DrawFn) -> list[RecordedCall]:
    calls: list[RecordedCall] = []
    now, turn = AGO, 1
    declared = {tool: (draw(st.sampled_from([None, True, False])), draw(st.booleans())) for tool in ("read", "write")}
    for n in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([-5_000, 0, 0, 10, 1_000, 3_000, 70_000, 700_000]))
        turn += draw(st.integers(0, 1))
        tool = draw(st.sampled_from(sorted(declared)))
        read_only, polling = declared[tool]
        error = draw(st.sampled_from([None, None, None, "timeout", "not_found", "exec_nonzero"]))
        calls.append(
            recorded(
                n,
                tool,
                draw(ARGUMENTS),
                f"{error}: {draw(RESULTS)}" if error else draw(RESULTS),
                ts_ms=now,
                duration_ms=draw(st.sampled_from([None, 0, 5, 2_500, 90_000])),
                turn=turn,
                has_result=draw(st.sampled_from([True, True, True, False])),
                error_type=error,
                is_error=error is not None,
                retry_after_ms=draw(st.sampled_from([None, 2_000])) if error else None,
                tokens_in=draw(st.sampled_from([None, 1_000])) if not calls or calls[-1].turn != turn else None,
                read_only=read_only,
                polling=polling,
            )
        )
        if calls[-1].tokens_in is not None:
            calls[-1].cost_usd = 0.02
    return calls


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=60)
@given(calls=sessions())
def test_a_recorded_session_is_decided_alike_as_a_case(name: str, calls: list[RecordedCall]) -> None:
    chain = POLICIES[name].chain
    case = only_case(case_of(calls, judged(chain, calls), policy=name))
    result = run_case(chain, case)
    assert result.passed, str(result)
