"""
States as bytes: what was packed is what is read, and what cannot be read is an error and no new session.
"""

import json

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import MemoryStore, Policy
from guardrails.core.packing import VERSION, pack, unpack
from guardrails.core.packing_6 import _entry
from guardrails.core.state import CAME, SessionState
from guardrails.core.values.errors import StateUnreadable
from tests.conftest import FakeClock
from tests.session.conftest import state_of
from tests.session.test_stories import STEPS, World
from tests.tables import table


GOLDEN = Path(__file__).parents[2] / "golden/0.2.0"


def test_an_idle_session_with_a_full_window_packs_into_2000_bytes() -> None:
    clock = FakeClock()
    session = Policy.load("default").session("s", clock=clock)
    for number in range(30):
        clock.advance(1)
        session.call("search_hotels", {"page": number}, lambda *_, n=number: {"results": [n]})
    assert len(session.ledger.read(lambda state, _: pack(state))) <= 2_000


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda packed: b"",
    lambda packed: packed[:10],
    lambda packed: packed[:-5],
    lambda packed: packed[:1] + b"\xff" * 20 + packed[21:],
    lambda packed: bytes([packed[0]]) + b"{}",
    lambda packed: packed.replace(b'"calls":2', b'"calls":"2"'),
]


@table("damage", DAMAGE)
def test_bytes_that_are_no_state_are_an_error_and_not_a_new_session(damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(StateUnreadable):
        unpack(damage(pack(SessionState(n=3, calls=2))))


@table("version", [0, 5, 7, VERSION + 1, 255])
def test_a_state_of_another_version_says_which_and_what_to_do(version: int) -> None:
    with pytest.raises(StateUnreadable, match=f"of version {version}, and this version of the library reads {VERSION}"):
        unpack(bytes([version]) + pack(SessionState())[1:])


def test_a_state_that_0_2_0_packed_is_read() -> None:
    state = unpack((GOLDEN / "state.bin").read_bytes())
    known = json.loads((GOLDEN / "state.json").read_text(encoding="utf-8"))
    for name in ("n", "seq", "calls", "turns", "cost", "tokens", "started_ms", "now_ms"):
        assert getattr(state, name) == known[name], name
    assert [entry.tool for entry in state.window] == [entry["tool"] for entry in known["window"]]
    came = [next((name for name in CAME[1:] if entry.get(name)), "") for entry in known["window"]]
    assert [CAME[entry.came] for entry in state.window] == came
    assert [_entry("t", *[0] * 5, bits << 2, *[0] * 4).lasting for bits in (1, 32, 33)] == [False, True, True]
    assert state.present.number == known["turn"]
    assert state.own["evidence"] == [known["seq"], [], 0], "what came before is no evidence any more"
    assert unpack(pack(state)) == unpack(pack(unpack(pack(state))))


def packed_session() -> bytes:
    world = World(MemoryStore())
    for number, what in enumerate(STEPS[: STEPS.index("forget")]):
        world.take("a", what, number)
    return pack(state_of(world.store, "a"))


@given(cut=st.integers(0, 3_000), changed=st.integers(1, 3_000), byte=st.integers(0, 255))
def test_a_state_that_is_damaged_is_an_error_or_another_state(cut: int, changed: int, byte: int) -> None:
    for whole in (packed_session(), (GOLDEN / "state.bin").read_bytes()):
        packed = bytearray(whole)
        packed[changed % len(packed)] = byte
        for damaged in (bytes(packed), bytes(packed[:cut])):
            with suppress(StateUnreadable):
                assert isinstance(unpack(damaged), SessionState)
