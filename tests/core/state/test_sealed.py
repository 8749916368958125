"""
Sessions that live with states which only the folder of the state can write to.
"""

import random
import sys

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Growth, Policy, SessionError, SessionState
from guardrails.core.state.entries import Entry, Pending
from tests.tables import table


FOLDER = str(Path(sys.modules[SessionState.__module__].__file__ or "").parent)
LISTS = (
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "remove",
    "reverse",
    "sort",
    "__setitem__",
    "__delitem__",
    "__iadd__",
)
DICTS = ("clear", "pop", "popitem", "setdefault", "update", "__setitem__", "__delitem__", "__ior__")


def check() -> None:
    writer = sys._getframe(2).f_code.co_filename
    # What a dataclass makes has no file.
    if writer != "<string>" and not writer.startswith(FOLDER):
        raise AssertionError(f"`{writer}` writes to a state")


def sealed(kind: type, names: tuple[str, ...]) -> Any:
    def guarded(name: str) -> Any:
        plain = getattr(kind, name)

        def method(self: Any, *values: Any, **named: Any) -> Any:
            check()
            return plain(self, *values, **named)

        return method

    return type(f"Sealed{kind.__name__}", (kind,), {name: guarded(name) for name in names})


SEALED: dict[type, Any] = {list: sealed(list, LISTS), dict: sealed(dict, DICTS)}


def assign(self: Any, name: str, value: Any) -> None:
    check()
    kind = SEALED.get(type(value))
    object.__setattr__(self, name, value if kind is None else kind(value))


@pytest.fixture
def seal(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (SessionState, Entry, Pending):
        monkeypatch.setattr(kind, "__setattr__", assign)


@pytest.mark.usefixtures("seal")
@table("name", ["default", "strict", "observe"])
def test_a_session_lives_with_a_sealed_state(name: str, clock: Any) -> None:
    shipped = Policy.load(name)
    limits = [Budget(max_calls=90, max_cost_usd=5.0), Growth(max_requests_per_second=50)]
    policy = Policy(shipped.chain.guards, rules=shipped.chain.rules, mode=shipped.chain.mode, scopes={"user": limits})
    session, chance = policy.session("s", scopes={"user": "u"}, clock=clock), random.Random(name)

    def execute(tool: str, arguments: Any) -> Any:
        if tool == "flaky":
            raise TimeoutError("no answer")
        return {"rows": [chance.randrange(3)]} if tool == "look" else f"{tool} is done"

    for n in range(120):
        clock.advance(chance.choice([0.0, 0.2, 3.0, 700.0]))
        if n % 9 == 0:
            session.request()
            session.charge(model="m", usage={"prompt_tokens": 9}, cost_usd=0.001, calls=chance.choice([None, 3]))
        if n % 40 == 5:
            with suppress(SessionError), session.child(f"c{n}", max_calls=3) as child:
                child.call("look", {"n": n}, execute)
        arguments = {"n": chance.randrange(4)}
        if n % 7 == 0:
            session.decide("look", arguments, id=f"id {n % 3}")
        session.call(chance.choice(["look", "write", "flaky"]), arguments, execute)
        if session.exhausted:
            session.extend(max_calls=30)
    assert session.progress["calls_used"] > 5


@pytest.mark.usefixtures("seal")
@table(
    "write",
    [
        lambda state: setattr(state, "n", 1),
        lambda state: state.window.append(None),
        lambda state: state.meters.update(a=1),
        lambda state: state.latest.setdefault(1, 2),
    ],
)
def test_a_write_from_elsewhere_is_found(write: Any) -> None:
    with pytest.raises(AssertionError, match="writes to a state"):
        write(SessionState())
