"""
Turning recorded sessions into cases.
"""

from typing import Any

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import Decision, Outcome, Policy, Price, SessionState
from guardrails.core.engine.chain import Chain
from guardrails.core.engine.complete import Settle
from guardrails.core.engine.decide import Ask
from guardrails.core.engine.engine import Engine
from guardrails.core.engine.events.admissions import Lose
from guardrails.core.engine.events.turns import Charge, Turn
from guardrails.core.engine.prepare import Prepared
from guardrails.core.text.signature import masked_result_hash, result_hash
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_call import tool_call
from guardrails.offline.policy_cases import Decided, case_of, read_cases, run_case
from guardrails.offline.policy_cases.case import Call, Case
from guardrails.offline.readers.base import RecordedCall


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
    engine = Engine(chain)

    def settle(end: int, decision: Decision, prepared: Prepared) -> None:
        engine.apply(Settle(end, decision, prepared, chain.plan(decision.call.tool)), (state,))

    for n, call in enumerate(calls):
        now = max(AGO if call.ts_ms is None else call.ts_ms, state.now_ms)
        for end, decision, prepared in sorted((one for one in running if one[0] <= now), key=lambda one: one[0]):
            settle(end, decision, prepared)
        running = [one for one in running if one[0] > now]
        if call.turn != turn:
            turn = call.turn
            engine.apply(Turn(now), (state,))
            if call.tokens_in is not None:
                engine.apply(Charge(now, 20_000, call.tokens_in), (state,))
        asked = tool_call(call.tool, call.arguments, str(n), None)
        decision = engine.apply(Ask(now, asked, chain.plan(call.tool)), (state,))
        decisions.append(decision)
        if decision.envelope is not None:
            continue
        if not call.has_result:
            engine.apply(Lose(now, decision), (state,))
            continue
        text = call.result or ""
        evidence = result_hash(text) if call.error_type is None else masked_result_hash(text)
        prepared = Prepared(Outcome(None, call.error_type, "", None, call.retry_after_ms), None, evidence)
        running.append((now + (call.duration_ms or 0), decision, prepared))
        if not call.duration_ms:
            settle(now, *running.pop()[1:])
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


def test_a_session_is_written_as_a_person_would_write_it() -> None:
    calls = [
        recorded(0, "login", {"user": "me", "password": "hunter2"}, "welcome", ts_ms=AGO, turn=1, duration_ms=250),
        recorded(1, "read", {"path": "a.txt"}, "text", ts_ms=AGO + 1_500, turn=2, tokens_in=900, cost_usd=0.02),
        recorded(2, "read", {"path": "b.txt"}, "no such file", ts_ms=AGO + 1_500, turn=2, is_error=True),
        recorded(3, "read", {"path": "a.txt"}, "text", ts_ms=AGO + 60_000, turn=3, polling=True),
    ]
    decided = [Decided("allow"), Decided("nudge", "x.y"), Decided("allow", observed=("a.b",)), Decided("deny", "c.d")]
    assert (
        case_of(calls, decided, name="a login", policy="team")
        == """\
# A recorded session. Secrets are left out and long texts cut; equal ones are still equal and different ones different.
version: 1
policy: "team"

cases:
  - name: "a login"
    tools:
      - {name: "login"}
      - {name: "read", polling: true}
    steps:
      - {turn: 0, at: 0}
      - call: "login"
        at: 0
        arguments: {"user": "me", "password": "[redacted]"}
        takes: 250ms
        result: "welcome"
      - {charge: {tokens: 900, cost_usd: 0.020000}, at: 1.500}
      - call: "read"
        at: 1.500
        arguments: {"path": "a.txt"}
        result: "text"
        expect: nudge
        code: "x.y"
      - call: "read"
        at: 1.500
        arguments: {"path": "b.txt"}
        error: {"type": "other", "message": "no such file"}
        observed: ["a.b"]
      - {turn: 0, at: 60}
      - call: "read"
        at: 60
        arguments: {"path": "a.txt"}
        expect: deny
        code: "c.d"
"""
    )


def test_a_case_is_named_after_its_session_where_nothing_else_is_said() -> None:
    assert only_case(allowed([recorded(0, "a", {})])).name == "session 1"
    assert only_case(allowed([RecordedCall("s", "", 0, "a", {})])).name == "session"
    long = only_case(allowed([RecordedCall("s", "../" * 500, 0, "a", {})])).name
    assert (len(long) < 200, long[:6]) == (True, "../../")


def test_the_decisions_of_a_run_are_taken_as_they_are() -> None:
    calls = [recorded(n, "search", {"q": "a"}) for n in range(3)]
    [first, second, third] = calls_in(case_of(calls, judged(POLICIES["strict"].chain, calls)))
    assert (first.expected.said, second.expected.code, third.expected.code) == ("allow", *["duplicates.window"] * 2)
    [*_, last] = calls_in(case_of(calls, judged(POLICIES["observe"].chain, calls)))
    assert (last.expected.said, last.expected.observed) == (
        "allow",
        frozenset({"duplicates.evidence", "loops.identical"}),
    )


def test_no_calls_or_as_many_decisions_as_calls_are_needed() -> None:
    with pytest.raises(ValueError, match="without calls"):
        allowed([])
    for number in (1, 3):
        with pytest.raises(ValueError, match="zip"):
            case_of([recorded(n, "a", {}) for n in range(2)], [Decided("allow")] * number)


@pytest.mark.slow
def test_what_does_not_fit_is_left_out_from_the_end_and_said() -> None:
    calls = [recorded(n, "a", {f"k{i}": [n, i] for i in range(40)}, f"{n}") for n in range(1_500)]
    text = allowed(calls)
    kept = calls_in(text)
    assert 300 < len(kept) < 1_500
    assert f"# The last {1_500 - len(kept):,} calls are left out: a case file holds no more.\n" in text
    assert len(text) < 1 << 20
    arguments = kept[-1].arguments
    assert isinstance(arguments, dict)
    assert arguments["k0"] == [len(kept) - 1, 0]


def test_prices_of_the_policy_are_applied_where_the_recording_has_no_cost() -> None:
    call = recorded(0, "a", {}, turn=1, model="small", tokens_in=1_000_000, tokens_out=500_000)
    prices = {"small": Price(input_mtok=0.5, output_mtok=2.0)}
    assert "{tokens: 1500000, cost_usd: 1.500000}" in case_of([call], [Decided("allow")], prices=prices)
    assert "{tokens: 1500000}" in allowed([call])
