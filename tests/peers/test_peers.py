"""
The works that packages are compared by: what they find in peers whose faults are known, in ours, and in the tables.
"""

import re
import tomllib

from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import __main__ as peers
from benchmarks.peers import works
from benchmarks.peers.drivers import CHILDREN, DRIVERS, Limits, Peer, Run, Said, Unfit
from benchmarks.peers.tables import tables


ROOT = Path(__file__).parents[2]
OURS = "toolcall-guardrails"


def counting(limits: Limits) -> Peer:
    """
    Counts a call once it has run, fails at what has no JSON, and refuses the third call of one text for ever after.
    """
    seen: list[str] = []
    ran = 0

    def call(tool: str, arguments: dict[str, Any], run: Run) -> Said:
        nonlocal ran
        if isinstance(arguments.get("value"), bytes | set):
            raise TypeError("no JSON")
        seen.append(f"{tool} {arguments}")
        if limits.calls is not None and ran >= limits.calls:
            return "refused"
        if limits.repeats and any(seen.count(text) > 2 for text in seen):
            return "refused"
        try:
            run()
        except Exception:
            return "refused"
        ran += 1
        return "ran"

    return call


def test_a_cap_that_is_checked_before_and_counted_after_leaks_under_parallel_calls() -> None:
    assert works.parallel(counting, Limits(calls=10)) > 10


def test_failures_that_are_free_are_found() -> None:
    assert works.sequential(counting, Limits(calls=10)) == 10
    assert works.sequential(counting, Limits(calls=10), fails=True) == 20


def test_an_odd_argument_that_raises_is_named() -> None:
    found = works.odd(counting)
    assert found["bytes"] == found["a set"] == "TypeError"
    assert found["NaN"] == "ran"


def test_forms_that_are_not_told_as_one_are_wrong() -> None:
    found = works.forms(counting)
    assert found["order of keys"] == "wrong"
    assert found["1 and '1'"] == "right"


def test_a_peer_that_stops_all_after_one_loop_is_found() -> None:
    assert works.after_a_refusal(counting) == "refused"


def test_a_loop_that_is_told_and_honest_work_that_is_refused_are_counted() -> None:
    found = works.told(counting)
    assert 0 < found["caught"] < found["loops"]
    assert "polling, progress each time" in found["refused"]


def test_a_work_that_does_not_apply_is_none_and_one_that_breaks_is_named() -> None:
    def unfit(limits: Limits) -> Peer:
        raise Unfit

    assert works.tried(lambda: works.parallel(unfit, Limits())) is None
    assert works.tried(lambda: 1 // 0).startswith("ZeroDivisionError")


def test_our_own_figures_hold() -> None:
    ours = DRIVERS[OURS]
    assert works.parallel(ours, Limits(calls=10)) == 10
    assert works.parallel(ours, Limits(usd=1.0, price=0.10)) == 10
    assert works.sequential(ours, Limits(usd=0.30, price=0.10)) == 3
    assert works.sequential(ours, Limits(calls=10), fails=True) == 10
    assert works.family(OURS) == 10
    assert set(works.odd(ours).values()) == {"ran"}
    assert set(works.forms(ours).values()) == {"right"}
    assert works.after_a_refusal(ours) == "runs"
    told = works.told(ours)
    assert told["caught"] == told["loops"]
    assert len(told["refused"]) == 2


def test_each_package_has_a_driver_and_a_version() -> None:
    assert list(peers.versions()) == list(DRIVERS)
    assert set(CHILDREN) <= set(DRIVERS)


def test_a_package_that_cannot_be_had_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = tmp_path / "runbound-0.11.2" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho it is out of order >&2\nexit 1\n")
    python.chmod(0o755)
    (python.parents[1] / "ready").touch()
    assert peers.main("runbound", "--environments", str(tmp_path)) == 1
    assert "runbound: it is out of order" in capsys.readouterr().err


def told(**found: Any) -> dict[str, Any]:
    works_of = {
        "name": "peer",
        "version": "1.0",
        "stories": {"loops": 55, "honest": 71, "caught": 3, "stopped": 2, "refused": ["a"], "hinted": ["b", "c"]},
        "also": {},
        "after a refusal": "refused",
        **dict.fromkeys(("parallel calls", "parallel usd", "sequential usd", "small usd", "failing calls", "family")),
        "cost": {"calls": 20_000, "ran": 72, "us": 5.1, "first_us": 5.0, "last_us": 5.2, "bytes_a_call": 0},
        "odd": {"NaN": "ran", "a cycle": "ValueError", "a set": "refused"},
        "forms": None,
    }
    return {**works_of, **found}


def test_tables_say_none_of_what_a_package_lacks_and_name_what_it_gets_wrong() -> None:
    also = {"`Loop` alone": {"loops": 55, "honest": 71, "caught": 1, "stopped": 1, "refused": [], "hinted": []}}
    shown = tables([told(**{"parallel usd": 40, "parallel calls": "RuntimeError: a lock", "also": also})])
    assert "| peer 1.0 | 3/55 | 2 | 70/71 | 2 | no |\n| peer 1.0, `Loop` alone | 1/55 | 1 | 71/71 | 0 |  |" in shown
    assert "| peer 1.0 | fails | 40 | none | none | none |" in shown
    assert "| peer 1.0 | 5 us, its rule of repeats off | 5 us | 5 us | 20,000 | 0 B |" in shown
    assert "| 1/3 | a cycle: ValueError | none | none |" in shown


def test_a_work_that_a_package_rules_out_is_no_failure_of_it() -> None:
    shown = tables([told(**{"parallel usd": works.ONE, "parallel calls": works.ONE})])
    assert "| peer 1.0 | one thread | one thread | none | none | none |" in shown


def test_a_package_whose_rules_refuse_distinct_calls_is_timed_without_them() -> None:
    def by_name(limits: Limits) -> Peer:
        ran = 0

        def call(tool: str, arguments: dict[str, Any], run: Run) -> Said:
            nonlocal ran
            ran += 1
            if limits.repeats and ran > 30:
                return "refused"
            run()
            return "ran"

        return call

    found = works.cost(by_name)
    assert found["ran"] == 30
    assert found["us"] > 0


def test_the_page_counts_our_dependencies() -> None:
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert f"We have {words[len(needed)]}." in (ROOT / "docs/peers.md").read_text(encoding="utf-8")


def test_the_readme_tells_what_the_page_tells() -> None:
    page = (ROOT / "docs/peers.md").read_text(encoding="utf-8").partition(peers.BEGIN)[2].partition(peers.END)[0]
    of_page = [[_cells(line) for line in table.splitlines()[2:]] for table in page.split("\n\n")]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("| package | loops caught |")[2]
    rows = [_cells(line) for line in readme.partition("\n\n")[0].splitlines()[2:]]
    stories, budgets, costs = ({row[0]: row for row in table} for table in of_page[:3])
    # Another way to put a package together stands on the page alone.
    assert [row[0] for row in rows] == list(budgets)
    for name, caught, spared, parallel, cost in rows:
        assert [caught, spared] == [stories[name][1], stories[name][3]]
        assert [parallel, cost] == [budgets[name][2], costs[name][1]]


def _cells(line: str) -> list[str]:
    return re.split(r"\s*\|\s*", line.strip().strip("|").strip())
