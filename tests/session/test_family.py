"""
The work of one session of a family, and the looks of the others.
"""

from typing import Any, ClassVar

import pytest

from guardrails import Duplicates, Envelope, Guard, MemoryStore, Policy, Session, SqliteStore, guard
from tests.tables import table


def look(session: Session) -> Envelope:
    return session.call("read_note", {"id": 1}, lambda *_: "as it was")


def work(session: Session, text: str = "new") -> Envelope:
    return session.call("store_note", {"id": 1, "text": text}, lambda *_: "stored")


def told(story: str, clock: Any, store: Any) -> str | None:
    """
    The code of the last look. A small letter looks, a large one works: the parent *p*, its children *a* and *b*, and *d*, a child of *a*.
    `A{` begins work and `A}` ends it; `-a` closes a child, and `wait` is an hour.
    """
    family = {"p": Policy.load("default").session("family", clock=clock, store=store)}
    begun, code = {}, None
    for step in story.split():
        name = step.strip("-{}").lower()
        if step == "wait":
            clock.advance(3_600)
            continue
        for one in ("a", "d") if name == "d" else (name,):
            if one not in family:
                family[one] = family["a" if one == "d" else "p"].child(one, share=0.5)
        session = family[name]
        if step.endswith("{"):
            begun[name] = session.decide("store_note", {"id": 1})
        elif step.endswith("}"):
            session.complete(begun.pop(name), "stored")
        elif step.startswith("-"):
            session.close()
        else:
            code = (look if step.islower() else work)(session).code
    return code


FREED = ("p p A -a p", "p p A p", "p p D -d -a p", "a a P a", "a a B a", "A{ p p A} p", "A{ p p p", "B{ a a a")
REFUSED = ("p p a -a p", "p p -a p", "A -a p p p", "P{ a a a", "A{ wait p p p")


@pytest.mark.parametrize("in_a_file", [False, True])
@table(("story", "code"), [
    *((story, None) for story in FREED), *((story, "duplicates.evidence") for story in REFUSED),
])  # fmt: skip
def test_work_alone_frees_the_looks_of_a_family(
    story: str, code: str | None, in_a_file: bool, clock: Any, tmp_path: Any
) -> None:
    if not in_a_file:
        assert told(story, clock, MemoryStore()) == code
        return
    with SqliteStore(tmp_path / f"{story}.db") as store:
        assert told(story, clock, store) == code


@guard
class Latest(Guard):
    """
    Remembers the latest call of a family until a call is over.
    """

    family: ClassVar[bool] = True

    def admit(self, call: Any, *_: Any) -> Any:
        return call.tool

    def settle(self, *_: Any) -> Any:
        return None


def test_what_a_child_forgets_its_family_forgets(clock: Any) -> None:
    parent = Policy([Latest()]).session("family", clock=clock)
    parent.decide("store_note", {})
    assert parent.ledger.read(lambda state, _: state.own) == {"latest": "store_note"}
    look(parent.child("a"))
    assert parent.ledger.read(lambda state, _: state.own) == {}


def test_an_earlier_result_is_told_to_be_old_once_a_child_has_worked(clock: Any) -> None:
    parent = Policy([Duplicates()]).session("family", clock=clock)
    look(parent)
    before = look(parent)
    with parent.child("a") as child:
        work(child)
    assert "previous_result_outdated" not in before.to_json()
    assert '"previous_result_outdated":true' in look(parent).to_json()
