"""
The work of one session of a family, and the looks of the others.
"""

from collections.abc import Callable
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Duplicates, Envelope, MemorySink, Policy, Session
from guardrails.stores.sqlite import SqliteStore
from tests.conftest import FakeClock
from tests.replaying import replay
from tests.tables import table


Story = Callable[[Session], Envelope]
STALE = "duplicates.evidence"


def look(session: Session) -> Envelope:
    return session.call("read_note", {"id": 1}, lambda *_: "as it was")


def work(session: Session, text: str = "new") -> Envelope:
    return session.call("store_note", {"id": 1, "text": text}, lambda *_: "stored")


def twice(session: Session) -> Session:
    look(session)
    look(session)
    return session


def own_child(parent: Session) -> Envelope:
    twice(parent)
    with parent.child("a", max_calls=9) as child:
        work(child)
    return look(parent)


def open_child(parent: Session) -> Envelope:
    twice(parent)
    work(parent.child("a", max_calls=9))
    return look(parent)


def grandchild(parent: Session) -> Envelope:
    twice(parent)
    with parent.child("a", max_calls=9) as child, child.child("b", max_calls=2) as deeper:
        work(deeper)
    return look(parent)


def parents_work(parent: Session) -> Envelope:
    child = twice(parent.child("a", max_calls=9))
    work(parent)
    return look(child)


def siblings_work(parent: Session) -> Envelope:
    child, sibling = twice(parent.child("a", max_calls=9)), parent.child("b", max_calls=9)
    work(sibling)
    return look(child)


def work_that_began_before(parent: Session) -> Envelope:
    child = parent.child("a", max_calls=9)
    begun = child.decide("store_note", {"id": 1})
    twice(parent)
    child.complete(begun, "stored")
    return look(parent)


def work_under_way(parent: Session) -> Envelope:
    child = parent.child("a", max_calls=9)
    child.decide("store_note", {"id": 1})
    return look(twice(parent))


def siblings_work_under_way(parent: Session) -> Envelope:
    child, sibling = parent.child("a", max_calls=9), parent.child("b", max_calls=9)
    sibling.decide("store_note", {"id": 1})
    return look(twice(child))


def childs_look(parent: Session) -> Envelope:
    twice(parent)
    with parent.child("a", max_calls=9) as child:
        look(child)
    return look(parent)


def no_call(parent: Session) -> Envelope:
    twice(parent)
    parent.child("a", max_calls=9).close()
    return look(parent)


def work_before(parent: Session) -> Envelope:
    with parent.child("a", max_calls=9) as child:
        work(child)
    return look(twice(parent))


def parent_that_waits(parent: Session) -> Envelope:
    parent.decide("ask_helper", {"task": 1})
    return look(twice(parent.child("a", max_calls=9)))


def work_given_up(parent: Session) -> Envelope:
    child = parent.child("a", max_calls=9)
    child.decide("store_note", {"id": 1})
    parent.ledger.clock.advance(3_600)  # type: ignore[attr-defined]
    return look(twice(parent))


FREED: list[Story] = [
    own_child,
    open_child,
    grandchild,
    parents_work,
    siblings_work,
    work_that_began_before,
    work_under_way,
    siblings_work_under_way,
]
REFUSED: list[Story] = [childs_look, no_call, work_before, parent_that_waits, work_given_up]


def told(story: Story, clock: Any, **session: Any) -> Envelope:
    return story(Policy.load("default").session("family", clock=clock, **session))


@table("story", FREED)
def test_the_work_of_one_session_of_a_family_frees_the_looks_of_all_others(story: Story, clock: Any) -> None:
    assert told(story, clock).ok


@table("story", REFUSED)
def test_a_family_without_work_frees_no_look(story: Story, clock: Any) -> None:
    assert told(story, clock).code == STALE


@pytest.mark.parametrize("story", [*FREED, *REFUSED])
def test_a_family_in_a_file_hears_of_the_same_work(story: Story, clock: Any, tmp_path: Any) -> None:
    assert told(story, clock, store=SqliteStore(tmp_path / "store.db")).code == told(story, clock).code


def test_an_earlier_result_is_told_to_be_old_once_a_child_has_worked(clock: Any) -> None:
    parent = Policy([Duplicates()]).session("family", clock=clock)
    look(parent)
    before = look(parent)
    with parent.child("a") as child:
        work(child)
    assert "previous_result_outdated" not in before.to_json()
    assert '"previous_result_outdated":true' in look(parent).to_json()


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["look", "work", "begin", "end"])), max_size=30))
def test_no_session_of_a_family_is_refused_a_look_after_the_others_work(story: list[tuple[int, str]]) -> None:
    clock, sink, policy = FakeClock(), MemorySink(), Policy([Duplicates(rule="evidence", window=50)])
    parent = policy.session("family", clock=clock, records=sink)
    family = [parent, parent.child("a"), parent.child("b")]
    version, begun = 0, []
    shown: dict[int, str] = {}
    for number, (who, what) in enumerate(story):
        clock.advance(1)
        if what == "look":
            now = str(version)
            seen = family[who].call("read_note", {"id": 1}, lambda *_, now=now: now)
            assert seen.ok or shown[who] == now
            shown[who] = now if seen.ok else shown[who]
        elif what == "work":
            version += family[who].call("store_note", {"n": number}, lambda *_: "stored").ok
        elif what == "begin" and who:
            begun.append((family[who], family[who].decide("store_note", {"n": number})))
        elif begun:
            version += 1
            session, decision = begun.pop()
            session.complete(decision, "stored")
    records = [line() if callable(line) else line for line in sink.records]
    assert all(again.same for again in replay(policy.chain, records))
