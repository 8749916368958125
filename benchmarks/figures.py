"""
The table of the README, of what `python3 dev.py bench` has measured: it is printed in Markdown where all of it is there.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Figure(NamedTuple):
    """
    What a benchmark found; None where it was not compared.
    """

    us: float
    bare: float | None
    r: float | None
    tenacity: float | None


ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "fresh call, sync / async": ("test_fresh_call", "test_fresh_call_awaited"),
    "refused duplicate / invalid arguments / polling repeat / failing tool": (
        *("test_refused_duplicate", "test_invalid_arguments", "test_polling_repeat", "test_failing_call"),
    ),
    "call 100 / call 100,000 of one session": ("test_of_one_session_call[100]", "test_of_one_session_call[100000]"),
    "CPU of the records' own thread, for the two lines of a call": ("test_writer_thread",),
    "signature of 3 fields / 20 leaves / 100 KB": tuple(
        f"test_cost[sign {name}]" for name in ("3 fields", "20 leaves, nested", "100 KB of ASCII")
    ),
    "CPU over the bare interpreter, byte code cached: import / default policy / `--version`": tuple(
        f"test_cpu_of[{name}-cached]"
        for name in ("import guardrails", "load the default policy", "guardrails --version")
    ),
}
"""Their names, and the benchmarks that they show."""


def figure(info: Mapping[str, Any], median_s: float) -> Figure:
    """
    What a benchmark with *info* found, whose rounds took *median_s* seconds.
    """
    us = info.get("median_us") or info.get("median_ns", median_s * 1e9) / 1e3
    return Figure(us, info.get("x_bare"), info.get("x_R", info.get("ratio_to_R")), info.get("x_tenacity"))


def readme(figures: Mapping[str, Figure]) -> list[str]:
    """
    The lines of the table; none where *figures*, by the name of the benchmark, lack one of them.
    """
    if not all(name in figures for names in ROWS.values() for name in names):
        return []
    lines = ["| case | median | x bare call | x R | x tenacity's no-op retry |", "|---|---|---|---|---|"]
    for title, names in ROWS.items():
        shown = [figures[name] for name in names]
        ratios = [
            _joined([each.bare for each in shown], 0),
            _joined([each.r for each in shown], 1),
            _joined([each.tenacity for each in shown], 1),
        ]
        lines.append(
            f"| {title} | {_times([each.us for each in shown])} | {' | '.join(ratios)} |".replace(
                "|  |", "| |"
            ).replace("|  |", "| |")
        )
    return lines


def _times(us: list[float]) -> str:
    if max(us) >= 5_000:
        return f"{' / '.join(f'{each / 1000:.1f}' for each in us)} ms"
    return f"{' / '.join(f'{each:.1f}' if max(us) < 20 else f'{each:.0f}' for each in us)} us"


def _joined(ratios: list[float | None], digits: int) -> str:
    return " / ".join(f"{ratio:,.{digits}f}" for ratio in ratios if ratio is not None)
