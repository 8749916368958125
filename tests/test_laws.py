"""
The laws that hold for every policy, every session and every outcome.
"""

import asyncio

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import guardrails

from guardrails import Decision, Envelope, Policy, Tool
from guardrails.core.guards.base import Guard, SessionState
from guardrails.core.guards.rules import RuleSettings, SumLimit
from guardrails.errors import SessionError
from guardrails.session.session import Session, scoped
from guardrails.sinks import MemorySink
from tests.conftest import FakeClock
from tests.replaying import replay


def caps_calls(policy: Any) -> bool:
    budget = policy.chain.budget
    return budget is not None and "max_calls" in budget.own


GUARDS: list[st.SearchStrategy[Guard]] = [
    st.builds(
        guardrails.Budget,
        max_calls=st.none() | st.integers(0, 6),
        max_turns=st.none() | st.integers(1, 3),
        max_cost_usd=st.none() | st.sampled_from([0.05, 0.3, 1.0]),
        max_tokens=st.none() | st.integers(0, 300),
        max_elapsed=st.none() | st.sampled_from([1.0, 60.0]),
    ),
    st.builds(
        guardrails.Growth,
        max_calls_per_second=st.none() | st.integers(1, 5),
        max_requests_per_second=st.none() | st.just(2),
    ),
    st.builds(
        guardrails.Rate, max_calls_per_second=st.none() | st.integers(1, 3), max_calls_per_minute=st.none() | st.just(4)
    ),
    st.builds(guardrails.Streak, max_same=st.none() | st.integers(1, 4), max_failures=st.none() | st.integers(1, 3)),
    st.builds(guardrails.Denials, max_turns_in_a_row=st.none() | st.integers(1, 3)),
    st.builds(guardrails.Duplicates, window=st.integers(1, 20), rule=st.sampled_from(["always", "evidence"])),
    st.builds(guardrails.Retryable, max_retries=st.integers(0, 3), backoff=st.sampled_from([0.5, 2.0])),
    st.builds(guardrails.RetryBudget, burst=st.integers(1, 3), ratio=st.just(0.5)),
    st.just(guardrails.Loops()),
    st.just(guardrails.ToolFilter(deny=("rm*",))),
    st.just(guardrails.Validation()),
    st.just(guardrails.Summary()),
    st.just(
        guardrails.Rules(
            rules=(
                RuleSettings(tools="read", limit=SumLimit(max=2, per=60.0)),
                RuleSettings(tools="pay", after="status", within=600.0),
                RuleSettings(tools="typed", after_not="read", same="n"),
            )
        )
    ),
    st.just(guardrails.Truncate(max_bytes=256)),
]
TOOLS = [
    Tool(name="read", read_only=True, repeats="evidence", cost_usd=0.05),
    Tool(name="status", repeats="allow"),
    Tool(name="pay", idempotent=False, cost_usd=0.2, timeout=5),
    Tool(name="typed", parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
]


class Interrupt(Exception):
    pass


RESULTS: list[Any] = [
    Interrupt("who?"),
    *({"rows": [1, 2]}, "text", "x" * 400, [], None),
    *(TimeoutError("slow"), PermissionError("no"), ConnectionError("gone")),
    {"isError": True, "content": [{"type": "text", "text": "rate limit exceeded"}]},
    Envelope.error("unavailable", "down", retryable=True, retry_after_ms=700, max_retries_remaining=2),
]


chains = st.tuples(*[st.none() | guard for guard in GUARDS]).map(lambda made: [g for g in made if g is not None])
calls = st.tuples(
    st.just("call"),
    st.sampled_from(["read", "status", "pay", "typed", "rm_all"]),
    st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": 1.0}, {"n": "x"}, "{broken"]),
    st.sampled_from(RESULTS),
    st.sampled_from([None, "call_0", "call_1"]),
)
others = st.one_of(
    st.tuples(st.just("turn"), st.sampled_from([None, 1, 2])),
    st.tuples(st.just("charge"), st.integers(0, 100), st.sampled_from([None, "resp_1", "resp_2"])),
    st.tuples(st.just("request")),
    st.tuples(st.just("wait"), st.sampled_from([0.0, 0.4, 3.0, 700.0, -50.0])),
    st.tuples(
        st.just("decide"), st.sampled_from(["read", "pay"]), st.sampled_from(["call_0", "call_1"]), st.booleans()
    ),
    st.tuples(st.sampled_from(["release", "suspend", "complete"]), st.integers(0, 3)),
    st.tuples(st.just("extend"), st.just(2)),
)
stories = st.lists(st.one_of(calls, calls, others), min_size=1, max_size=25)


def tell(session: Session, clock: FakeClock, story: list[Any], call: Callable[..., Envelope]) -> list[str]:
    """
    Live through a story; the texts that the model reads.
    """
    texts = []
    decided: list[Decision] = []
    for event, *details in story:
        if event == "call":
            tool, arguments, result, call_id = details

            def execute(_: str, __: Any, result: Any = result) -> Any:
                if isinstance(result, Exception):
                    raise result
                return result

            try:
                texts.append(call(tool, arguments, execute, id=call_id).to_json())
            except Interrupt:
                texts.append("interrupted")
        elif event == "turn":
            session.begin_turn(details[0], key=None if details[0] is None else f"resp_{details[0]}")
        elif event == "charge":
            usage = {"prompt_tokens": details[0], "completion_tokens": 1}
            session.charge(model="m", usage=usage, cost_usd=0.01, key=details[1])
        elif event == "request":
            session.request()
        elif event == "wait":
            clock.advance(details[0])
        elif event == "decide":
            tool, call_id, claim = details
            decided.append(session.decide(tool, {"n": 1}, id=call_id, claim=claim))
        elif event in ("release", "suspend", "complete"):
            for decision in decided[-1 - details[0] :][:1]:
                more = ("done",) if event == "complete" else ()
                getattr(session if more else session.calls, event)(decision, *more)
        elif caps_calls(session.ledger.policy):
            session.extend(max_calls=details[0])
    return texts


def live(
    guards: list[Guard], story: list[Any], *, awaited: bool = False, **options: Any
) -> tuple[list[str], list[Any]]:
    clock, sink = FakeClock(), MemorySink()
    policy = Policy(guards, tools=TOOLS, **options)
    session = scoped(policy.session("law", records=sink, clock=clock), {}, passes=(Interrupt,))

    def call(*args: Any, **kwargs: Any) -> Envelope:
        if not awaited:
            return session.call(*args, **kwargs)
        tool, arguments, execute = args

        async def aexecute(name: str, given: Any) -> Any:
            return execute(name, given)

        return asyncio.run(session.acall(tool, arguments, aexecute, **kwargs))

    texts = tell(session, clock, story, call)
    return texts, sink.records


@given(chains, stories)
def test_a_replay_from_the_records_alone_is_exact(guards: list[Guard], story: list[Any]) -> None:
    _, records = live(guards, story)
    assert [line["n"] for line in sorted(records, key=lambda r: r["n"])] == list(range(1, len(records) + 1))
    state = SessionState()
    replayed = list(replay(Policy(guards, tools=TOOLS).chain, records, state))
    assert len(replayed) == sum(line["event"] == "call" for line in records)
    assert all(again.same for again in replayed)
    assert state.n == len(records)


@given(chains, stories, stories, st.sampled_from([{}, {"max_calls": 2}]))
def test_a_replay_is_exact_for_a_session_with_tools_of_its_own_and_for_its_child(
    guards: list[Guard], before: list[Any], within: list[Any], held: dict[str, int]
) -> None:
    clock, sink = FakeClock(), MemorySink()
    policy = Policy(guards)
    if not caps_calls(policy):
        held = {}
    session = scoped(policy.session("law", tools=TOOLS, records=sink, clock=clock), {}, passes=(Interrupt,))
    tell(session, clock, before, session.call)
    # An exhausted session has no children, and one with less left than is asked for neither.
    with suppress(SessionError), session.child("kid", again=False, **held) as child:
        tell(child, clock, [event for event in within if event[0] != "extend"], child.call)
    tell(session, clock, before, session.call)
    replayed = list(replay(policy.chain, sink.records))
    assert len(replayed) == sum(line["event"] == "call" for line in sink.records)
    assert all(again.same for again in replayed)


@given(chains, stories)
def test_the_sync_and_the_async_shell_say_the_same(guards: list[Guard], story: list[Any]) -> None:
    texts, records = live(guards, story)
    awaited, arecords = live(guards, story, awaited=True)
    assert texts == awaited
    assert [(r["event"], r.get("code"), r.get("status")) for r in records] == [
        (r["event"], r.get("code"), r.get("status")) for r in arecords
    ]


@given(chains, stories, st.randoms(use_true_random=False))
def test_the_order_of_guards_never_changes_allow_or_deny(guards: list[Guard], story: list[Any], random: Any) -> None:
    chain = Policy(guards, tools=TOOLS).chain
    shuffled = list(guards)
    random.shuffle(shuffled)
    other = Policy(guards, tools=TOOLS)
    other.chain = type(chain)(shuffled, chain.tools)
    one, two = MemorySink(), MemorySink()
    for policy, sink in ((Policy(guards, tools=TOOLS), one), (other, two)):
        clock = FakeClock()
        session = policy.session("law", records=sink, clock=clock)
        # Shapes may depend on order, and what they say of retries is part of the state.
        tell(session, clock, [s for s in story if not isinstance(s[-2:][0], Envelope)], session.call)
    seen = [[(r["seq"], r["decision"]) for r in sink.records if r["event"] == "call"] for sink in (one, two)]
    assert seen[0] == seen[1]


@given(chains, stories)
def test_observe_never_changes_what_the_model_reads(guards: list[Guard], story: list[Any]) -> None:
    watched = [replace(g, mode="observe") for g in guards]
    story = [event for event in story if event[0] != "extend"]
    observed, _ = live(watched, story)
    bare, _ = live([], story)
    assert observed == bare


@given(chains, stories, st.sampled_from(["read", "pay", "status"]))
def test_a_denied_call_is_charged_nothing(guards: list[Guard], story: list[Any], tool: str) -> None:
    clock = FakeClock()
    policy = Policy(guards, tools=TOOLS)
    session = policy.session("law", clock=clock)
    tell(session, clock, story, session.call)

    def totals(state: SessionState, _: int) -> tuple[Any, ...]:
        # An admission that expires meanwhile keeps its estimate: what was held is then spent.
        money = state.cost + state.held_cost
        entries = [(entry.seq, entry.sig) for entry in state.window]
        return (state.calls, state.seq, state.turns, money, state.own.get("streak"), state.own.get("growth"), entries)

    before = session.ledger.read(totals)
    envelope = session.call(tool, {"n": 1}, lambda *_: {"ran": True}, id="fresh")
    if envelope.status not in ("success", "error"):
        assert session.ledger.read(totals) == before
