"""
The page of the rollout: its commands and its programs, as they stand, on a recorded week whose work is known to be honest or waste.

Monday to Friday are days as most are. Saturday is a bad one: a model is stuck, a service is down.
"""

import json
import re
import shlex

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from typer.testing import CliRunner

from guardrails import JsonLines, Policy
from guardrails.cli import app
from tests.conftest import FakeClock
from tests.docs.pages import DOCS, blocks


PAGE: Final = DOCS / "report.md"
MORE: Final = "..."
"""A shown output goes on, or leaves lines out."""
MONDAY: Final = 1_799_020_800
"""2027-01-04, 00:00 UTC."""
DAY_S: Final = 86_400

Calls = set[tuple[str, int]]
"""Recorded calls: the session, and the number in it."""


class Step(NamedTuple):
    """
    A call, in a turn of its own.
    """

    tool: str
    result: Any
    """An exception is raised."""
    arguments: dict[str, Any]
    after: int = 20
    waste: bool = False


def order(n: int) -> Iterator[Step]:
    """
    A customer's order: the catalogue is asked for twice, which never brings anything.
    """
    yield Step("catalogue", {"items": ["tea", "cup"]}, {"of": "all"})
    yield Step("catalogue", {"items": ["tea", "cup"]}, {"of": "all"}, waste=True)
    yield Step("stock", {"left": n}, {"item": f"tea {n}"})
    yield Step("place_order", {"id": f"order {n}"}, {"item": f"tea {n}", "customer": n})


def parcel(n: int) -> Iterator[Step]:
    """
    A parcel is followed: that it has not moved yet is no waste, since it moves later with nothing done for it.
    """
    for place in ("depot", "depot", "a van", "a van", "home"):
        yield Step("parcel_place", {"at": place}, {"of": f"parcel {n}"}, after=30)
    yield Step("note", {"saved": True}, {"text": f"parcel {n} is at home"})


def page(n: int) -> Iterator[Step]:
    """
    A page is edited, and checked after each edit: the same check with the same result, each time of another page.
    """
    yield Step("open_page", {"text": f"draft {n}"}, {"path": f"p{n}.md"})
    for line in range(4):
        yield Step("edit_page", {"edited": True}, {"path": f"p{n}.md", "line": line})
        yield Step("run_checks", {"failed": 0}, {}, after=60)


def stuck(n: int) -> Iterator[Step]:
    """
    A model asks the same and gets the same, over and over.
    """
    yield Step("stock", {"left": 2}, {"item": f"cup {n}"})
    for _ in range(25):
        yield Step("stock", {"left": 2}, {"item": f"cup {n}"}, after=5, waste=True)


def outage(n: int) -> Iterator[Step]:
    """
    A service is down; the agent tries later, as it is told, and goes on with other work.
    """
    yield Step("stock", TimeoutError("no answer within 5 s"), {"item": f"pot {n}"})
    yield Step("stock", TimeoutError("no answer within 5 s"), {"item": f"pot {n}"}, after=90)
    yield Step("stock", {"left": 3 + n}, {"item": f"pot {n}"}, after=120)
    yield Step("place_order", {"id": f"order of pot {n}"}, {"item": f"pot {n}", "customer": n})


USUAL: Final = {order: 8, parcel: 4, page: 3}
BAD: Final = {order: 4, parcel: 2, stuck: 6, outage: 6}
QUIET: Final = {order: 2, page: 1}
WEEK: Final = [*[USUAL] * 5, BAD, QUIET]


def record(policy: Policy, folder: Path, days: list[dict[Any, int]]) -> tuple[Calls, Calls]:
    """
    Record *days* under *policy*, each in its own file of *folder*. Returns the calls that were honest, and those that were waste.
    """
    calls: tuple[Calls, Calls] = (set(), set())
    folder.mkdir()
    for number, kinds in enumerate(days):
        clock = FakeClock(MONDAY + number * DAY_S + 9 * 3600)
        with JsonLines(folder / f"{number}.jsonl") as sink:
            for kind, n in ((kind, n) for kind, times in kinds.items() for n in range(times)):
                name = f"{number}-{kind.__name__}-{n}"
                with policy.session(name, records=sink, clock=clock) as session:
                    for index, step in enumerate(kind(n)):

                        def execute(*_: Any, result: Any = step.result) -> Any:
                            if isinstance(result, Exception):
                                raise result
                            return result

                        clock.advance(step.after)
                        session.begin_turn()
                        calls[step.waste].add((name, index))
                        session.call(step.tool, step.arguments, execute)
    return calls


def run(command: str) -> str:
    """
    What a command of the page prints.
    """
    program, *arguments = shlex.split(command)
    assert program == "guardrails"
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})
    assert done.exit_code == 0, f"{command}\n{done.output}"
    return done.stdout


def refused(policy: str, records: str) -> Calls:
    run(f"guardrails replay {policy} {records} --decisions decisions.jsonl")
    lines = [json.loads(line) for line in Path("decisions.jsonl").read_text().splitlines()]
    return {(line["session_id"], line["call_index"]) for line in lines if line["decision"] == "deny"}


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Calls, Calls]:
    monkeypatch.chdir(tmp_path)
    return record(Policy.load("observe"), Path("records"), WEEK)


def test_the_page_runs_and_prints_what_is_shown(week: tuple[Calls, Calls]) -> None:
    printed, shown = "", 0
    names: dict[str, Any] = {}
    for language, text, _ in blocks(PAGE):
        if language == "sh":
            printed = "".join(map(run, text.splitlines()))
        elif language == "yaml":
            Path("overrides.cases.yaml").write_text(text)
        elif language == "python":
            exec(compile(text, "report.md", "exec"), names)
        elif language == "text":
            pattern = ".*".join(re.escape(part.rstrip("\n")) for part in re.split(rf"(?m)^{re.escape(MORE)}\n", text))
            assert re.search(pattern, printed, re.DOTALL), f"{text}\n--- is not in\n{printed}"
            shown += 1
    assert shown >= 5
    names["session"].close()
    assert (names["session"].ledger.policy.name, names["policy"].name) == ("observe", "overrides.yaml")


def test_the_suggested_policy_refuses_no_honest_work_and_most_of_the_waste(week: tuple[Calls, Calls]) -> None:
    honest, waste = week
    lines = [json.loads(line) for path in Path("records").iterdir() for line in path.read_text().splitlines()]
    calls = [line for line in lines if line["event"] == "call"]
    assert len(calls) == len(honest) + len(waste)
    assert {line["decision"] for line in calls} == {"allow"}
    run("guardrails report records --suggest -o overrides.yaml")
    found = refused("overrides.yaml", "records")
    assert found & honest == set()
    assert len(found & waste) > 0.95 * len(waste)
    # What the shipped policy refuses of the honest work is why one records a week first.
    assert refused("default", "records") & honest
    # The day after is enforced, and honest work goes on.
    _, waste = record(Policy.load("overrides.yaml"), Path("next"), [USUAL])
    run("guardrails replay --exact overrides.yaml next/0.jsonl")
    assert refused("overrides.yaml", "next/0.jsonl") == waste
