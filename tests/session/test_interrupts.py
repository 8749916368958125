"""
Ctrl-C at every single place where Python hears of signals: after each call of a function in C, and at the start of each in Python.
"""

import itertools

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy, Rate, Session, SqliteStore, Success, Tool
from guardrails.core.records.replay import Gap, kin, replay, replay_together, shares
from guardrails.session.calls.current import current_session
from guardrails.sinks import MemorySink
from guardrails.stores.memory import MemoryStore
from tests.interrupting import at
from tests.session.signals import interrupted


# What is interrupted while a generator is closed is raised nowhere, as Python has it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
NOW = 1_800_000_000.0
TOOLS = [Tool(name="pay", cost_usd=0.01, tokens=7), Tool(name="look", read_only=True)]
Work = Callable[[Session], object]


def paid(session: Session) -> None:
    session.call("pay", {"n": 1}, lambda _tool, _arguments: Success({"paid": 1}, cost_usd=0.02))


def failed(session: Session) -> None:
    session.call("pay", {"n": 1}, lambda _tool, _arguments: 1 / 0)


def refused(session: Session) -> None:
    session.call("none such", {"n": object()}, lambda *_: "ran")


def told(session: Session) -> None:
    session.charge(model="m", cost_usd=0.001, calls=1, request=session.request(tokens=10))


def in_child(session: Session) -> None:
    with session.child("c", max_calls=2) as child:
        paid(child)


def decided(session: Session) -> None:
    session.complete(session.decide("pay", {"n": 1}, claim=True), "done")


WORKS: dict[str, Work] = {
    "call": paid,
    "failure": failed,
    "refusal": refused,
    "response": told,
    "child": in_child,
    "decide": decided,
}


def policy_of(*, scoped: bool) -> Policy:
    own = [Budget(max_calls=1_000, max_cost_usd=10), Rate(max_calls_per_minute=900)]
    return Policy(own, scopes={"user": [Budget(max_calls=1_000, max_tokens=90_000)]} if scoped else {}, tools=TOOLS)


def held(session: Session) -> list[Any]:
    return session._read(
        lambda state, _: [
            state.held_cost,
            state.held_tokens,
            [one.tool for one in state.pending.values()],
            state.reserved,
        ]
    )


def exact(policy: Policy, sink: MemorySink, last: int) -> int:
    """
    How many events are in gaps, if every other one is there and every decision is the recorded one.
    """
    lives: dict[Any, list[Any]] = {}
    for record in sink.records:
        made = {**record, "arguments": None, "result": None}
        lives.setdefault((record["session_id"], record["run"]), []).append(made)
    gaps: list[Gap] = []
    if any(shares(record) for record in sink.records):
        for group in kin(lives.values()):
            assert all(one.same for one in replay_together(policy.chain, group, scopes=policy.scopes, gaps=gaps))
    else:
        for life in lives.values():
            assert all(one.same for one in replay(policy.chain, life, gaps=gaps))
    known = {record["n"] for record in sink.records if record["session_id"] == "s"}
    bridged = {n for gap in gaps if gap.session_id == "s" for n in range(gap.first, gap.last + 1)}
    assert set(range(1, last + 1)) <= known | bridged
    return len(bridged - known)


def walk(work: Work, *, kind: str, scoped: bool, folder: Path, step: int) -> Iterator[tuple[int, int]]:
    for place in itertools.count(0, step):
        policy, sink = policy_of(scoped=scoped), MemorySink()
        store = MemoryStore() if kind == "memory" else SqliteStore(folder / f"{place}.db")
        scopes = {"user": "u1"} if scoped else None
        session = policy.session("s", store=store, records=sink, scopes=scopes, clock=lambda: NOW)
        paid(session)
        if not at(place, lambda session=session: work(session)):  # type: ignore[misc]
            return
        # It goes on, and so does its next call.
        assert session.call("look", {}, lambda *_: "ok").ok
        assert current_session() is None, place
        if work in (paid, failed, refused):
            assert held(session) == [0, 0, [], {}], place
        yield place, exact(policy, sink, session._read(lambda state, _: state.n))


@pytest.mark.parametrize("scoped", [False, True], ids=["alone", "scoped"])
@pytest.mark.parametrize("name", WORKS)
def test_what_is_interrupted_anywhere_holds_nothing_and_is_recorded_or_named(
    name: str, scoped: bool, tmp_path: Path
) -> None:
    step = 7 if name == "child" else 1
    gaps = [gap for _, gap in walk(WORKS[name], kind="memory", scoped=scoped, folder=tmp_path, step=step)]
    assert len(gaps) >= 30
    assert max(gaps) <= 4


@pytest.mark.parametrize("name", ["call", "response"])
def test_in_a_file_an_interrupted_step_leaves_no_gap_at_all(name: str, tmp_path: Path) -> None:
    gaps = [gap for _, gap in walk(WORKS[name], kind="file", scoped=True, folder=tmp_path, step=13)]
    assert set(gaps) == {0}


@pytest.mark.parametrize(
    ("store", "way", "shape"),
    [
        ("memory", "sync", "scoped"),
        ("memory", "run", "alone"),
        ("memory", "threads", "scoped"),
        ("sqlite", "sync", "scoped"),
        ("sqlite", "threads", "alone"),
    ],
)
def test_ctrl_c_at_random_moments_loses_no_event_and_holds_no_call(store: str, way: str, shape: str) -> None:
    found = interrupted(store, way, shape, signals=25, seed=11, pause=0.05)
    assert (found.missing, found.pending, found.held, found.exact, found.goes_on) == (0, 0, 0, "", True)
