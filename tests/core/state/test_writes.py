"""
Every write to a state, an entry or an admission is in `core/state`; what else the engine is given it leaves as it is.
"""

import re

from pathlib import Path

import pytest

from .written import writes


PACKAGE = Path(__file__).parents[3] / "guardrails"
ROOMS = ("core/engine", "core/records", "core/envelope", "core/guards", "core/repetition")
"""Rooms of the core that know states; the others stand below `core/state`, and know none."""
BELOW = ("arguments", "commands", "result", "retries", "text", "tools", "values")
EXCEPT = {
    # What a guard's `shape` is for; a test of the guards holds it to that.
    ("core/guards", "envelope"),
    # Made once, before anything is decided: the class of a guard, and what rules say of a tool.
    ("core/guards/base.py", "cls"),
    ("core/guards/settings.py", "cls"),
    ("core/guards/settings.py", "made"),
    ("core/engine/chain.py", "settings"),
}
"""(file, or folder, and the name that is written to)"""
NAMED = ("state", "states", "admission", "window")
"""What whoever drives the engine calls what it must not write to."""


def found(path: Path) -> list[tuple[str, int, str]]:
    name = path.relative_to(PACKAGE).as_posix()
    made = [(name, line, text) for line, text in writes(path.read_text())]
    return [
        one
        for one in made
        if not any(
            name.startswith(where) and one[2].removeprefix("setattr(").startswith(root) for where, root in EXCEPT
        )
    ]


@pytest.mark.parametrize(
    "path", sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")), ids=lambda path: path.stem
)
def test_only_the_folder_of_the_state_writes_to_what_it_is_given(path: Path) -> None:
    assert found(path) == []


def test_every_room_of_the_core_is_looked_at() -> None:
    rooms = {path.parent.relative_to(PACKAGE / "core").parts[0] for path in (PACKAGE / "core").glob("*/*.py")}
    assert rooms == {"state", *BELOW, *(room.removeprefix("core/") for room in ROOMS)}


@pytest.mark.parametrize("room", BELOW)
def test_the_rooms_below_know_no_state(room: str) -> None:
    for path in (PACKAGE / "core" / room).rglob("*.py"):
        assert "core.state" not in path.read_text(), path


@pytest.mark.parametrize(
    "path",
    sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if "core" not in path.relative_to(PACKAGE).parts and "guardrails.core." in path.read_text()
    ),
    ids=lambda path: path.relative_to(PACKAGE).as_posix(),
)
def test_whoever_drives_the_engine_writes_to_no_state(path: Path) -> None:
    for _, text in writes(path.read_text()):
        owners = re.sub(r"\[.*?\]", ".", text.partition("(")[0]).split(".")[:-1]
        assert not {owner.lstrip("_") for owner in owners} & {*NAMED}, text


PLANTED = [
    "def f(state):\n    state.n = 1",
    "def f(state):\n    state.n += 1",
    "def f(state):\n    del state.meters",
    "def f(state):\n    state.meters['a'] = 1",
    "def f(state):\n    del state.pending[1]",
    "def f(state):\n    state.window[0].status = 'ok'",
    "def f(state):\n    state.window.append(1)",
    "def f(state):\n    setattr(state, 'n', 1)",
    "def f(state):\n    object.__setattr__(state, 'n', 1)",
    "def f(state):\n    state.n, other = 1, 2",
    "def f(state):\n    for state.n in (1, 2): pass",
    "def f(state):\n    with g() as state.n: pass",
    "def f(state):\n    known = state.refusals\n    known.append(1)",
    "def f(state):\n    known = []\n    known = state.refusals\n    known.append(1)",
    "def f(state):\n    known = state.refusals\n    known += [1]",
    "def f(state):\n    for entry in state.window: entry.turn = 1",
    "def f(state):\n    [entry] = state.window\n    entry.turn = 1",
    "def f(state):\n    entry = state.window[0]\n    entry.turn = 1",
    "def f(states):\n    states[0].n = 1",
    "def f(state):\n    state.__dict__.update(n=1)",
    "def f(state):\n    vars(state)['n'] = 1",
    "def f(state):\n    list.append(state.window, 1)",
    "def f(state):\n    pending = admit(state)\n    pending.limit = None",
    "def f(decision):\n    decision.session = 's'",
    "def f(envelope):\n    envelope.left_out = ()",
    "class A:\n    def f(self):\n        self.state.n = 1",
    "def f(state):\n    known = state.meters\n    known |= other",
    "def f(state):\n    note = state.meters.update\n    note(a=1)",
    "def f(state):\n    list(map(state.window.append, [1]))",
    "def f(state):\n    getattr(state.window, 'append')(1)",
    "def f(state):\n    write = setattr\n    write(state, 'n', 1)",
    "def f(state):\n    partial(setattr, state)('n', 1)",
    "def f(state):\n    SessionState.n.__set__(state, 1)",
    "def f(state):\n    SessionState.__init__(state)",
    "def f(state):\n    state.window.__imul__(0)",
    "def f(state):\n    operator.iadd(state.window, [1])",
    "def f(state):\n    heapq.heapreplace(state.window, 1)",
    "class A:\n    window = []\n    def __init__(self, w):\n        self.window = w\n    def f(self):\n        self.window.append(1)",
    "class A:\n    def __init__(self):\n        self.w = []\n    def f(self, w):\n        self.w = w\n        self.w.append(1)",
    "class A:\n    def __init__(self, window):\n        self.window = window\n    def f(self):\n        self.window.append(1)",
    "def f(state):\n    def g():\n        state.n = 1",
    "f = lambda state: state.window.append(1)",
]


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_write_is_found(source: str) -> None:
    assert writes(source)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    made = []\n    made.append(x)\n    made[0] = 1\n    made += [2]",
        "def f(cls):\n    made = cls.__new__(cls)\n    made.n = 1\n    return made",
        "def f(x):\n    made = x.copy()\n    made.n = 1",
        "class A:\n    def __init__(self):\n        self.n = 1\n        self.kept = {}\n    def f(self):\n        self.kept[1] = 2",
        "def f(x):\n    made = {}\n    made.setdefault(x, []).append(1)",
        "def f(x):\n    kept = []\n    def g():\n        kept.append(x)",
        "def f(x):\n    n = 0\n    n += x.n",
    ],
)
def test_what_a_function_made_itself_is_its_own(source: str) -> None:
    assert writes(source) == [] or source.endswith("n += x.n")
