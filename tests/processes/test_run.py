"""
The output of a command is bounded, and exact until it must be cut; each program ends with all that it started.
"""

import os

import pytest

from guardrails.agent.builtin.shell import Bounded, run
from guardrails.processes.sandbox import Started
from tests.tables import table


@table("sizes", [[10], [100], [101], [50, 51], [1, 1_000, 1], [7] * 100])
def test_bounded_output_is_exact_until_it_must_be_cut(sizes: list[int]) -> None:
    bounded, all_ = Bounded(100), b"".join(bytes([65 + n % 26]) * size for n, size in enumerate(sizes))
    reading, writing = os.pipe()
    os.write(writing, all_)
    os.close(writing)
    bounded.drain(reading)
    text = bounded.text()
    if len(all_) <= 100:
        assert text == all_.decode()
    else:
        assert text.startswith(all_[:50].decode())
        assert text.endswith(all_[-50:].decode())
        assert f"{len(all_) - 100:,} bytes left out" in text
    assert len(bounded.kept) <= 100


@pytest.mark.system
def test_what_a_program_leaves_behind_ends_with_it_and_not_with_those_that_read_of_it() -> None:
    stages = [["sh", "-c", "sleep 60 & echo x"], ["cat"]]
    ended = run([(";", stages)], lambda words, at: Started(tuple(words), os.environ, at), "/", timeout=20, limit=100)
    assert (ended.output, ended.exit_code) == ("x\n", 0)
