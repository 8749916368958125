"""
The output of a command is bounded, and exact until it must be cut.
"""

from guardrails.processes.run import Bounded
from tests.tables import table


@table("sizes", [[10], [100], [101], [50, 51], [1, 1_000, 1], [7] * 100])
def test_bounded_output_is_exact_until_it_must_be_cut(sizes: list[int]) -> None:
    bounded, all_ = Bounded(100), b""
    for number, size in enumerate(sizes):
        data = bytes([65 + number % 26]) * size
        bounded.add(data)
        all_ += data
    text = bounded.text()
    if len(all_) <= 100:
        assert text == all_.decode()
    else:
        assert text.startswith(all_[:50].decode())
        assert text.endswith(all_[-50:].decode())
        assert f"{len(all_) - 100:,} bytes left out" in text
    assert len(bounded.kept) <= 100
