"""
One table of all benchmarks at the end of a run, and one for docs/measurements.md.
"""

from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # The table below says all of the plugin's own, and what it is compared to.
    config.option.benchmark_quiet = True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    session: Any = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    terminalreporter.section("benchmarks")
    terminalreporter.write_line(f"{'case':58s}{'median us':>12s}")
    for case in session.benchmarks:
        info = case.extra_info
        us = info.get("median_us") or case.stats.median * 1e6
        name = case.name.removeprefix("test_").replace("_", " ")
        note = info.get("note") or info.get("figure") or ""
        terminalreporter.write_line(f"{name:58.57s}{us:12.2f}  {note}".rstrip())
    rows = [case.extra_info for case in session.benchmarks if "row" in case.extra_info]
    if rows:
        terminalreporter.section("for docs/measurements.md")
        terminalreporter.write_line("| case | R | aim |\n|---|---|---|")
        for said in rows:
            terminalreporter.write_line(f"| {said['row']} | {said['figure']} | {said['aim']} |")
