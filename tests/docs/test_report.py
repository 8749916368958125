"""
The page of the report, run as it stands.
"""

import re
import shlex

from pathlib import Path
from typing import Any

import pytest

from typer.testing import CliRunner

from guardrails.cli import app
from guardrails.offline.quality.counting import MAX_SESSIONS
from guardrails.offline.quality.quantiles import ACCURACY
from guardrails.offline.quality.suggestions.bounds import WRONG_ALLOWED, WRONG_BOUND
from guardrails.offline.quality.suggestions.limits import CUT, HOPELESS, TIMED, TIMEOUT_FACTOR
from guardrails.offline.quality.suggestions.suggest import HARMLESS, POLLS, SESSIONS
from guardrails.offline.quality.suggestions.windows import OWN, WEIGHT
from guardrails.offline.quality.tally import Tally


PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text()
MORE = "..."
"""A shown output goes on."""


def test_what_the_page_shows_is_what_its_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed, names, shown = "", dict[str, Any](), 0
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(text, "report.md", "exec"), names)  # noqa: S102
        elif language == "sh" and "RECORDS" not in text:
            (command,) = text.splitlines()
            done = CliRunner().invoke(app, shlex.split(command)[1:])
            assert done.exit_code == 0, done.output
            printed = done.stdout
        elif language == "text":
            expected = text.rstrip().removesuffix(MORE).rstrip()
            got = printed.rstrip()
            assert (got[: len(expected)] if text.rstrip().endswith(MORE) else got) == expected
            shown += 1
    assert shown == 4


def test_the_commands_that_are_told_exist() -> None:
    said = " ".join(CliRunner().invoke(app, ["report", "--help"], env={"COLUMNS": "200"}).stdout.split())
    for option in ("--html", "--json", "--suggest", "-o", "--policy"):
        assert option in said


def test_every_figure_of_the_json_is_told_of() -> None:
    found = {*Tally("a").to_dict()} - {"tool", "denied", "polling_waits", "refused_repeats", "nudged_repeats"}
    assert {name for name in found if f"`{name}`" not in PAGE} == set()


def test_the_bounds_are_those_of_the_code() -> None:
    for said in (
        f"{MAX_SESSIONS:,} sessions are open at once",
        f"off by at most {100 * ACCURACY:.0f} % of itself",
        f"weigh a wrong denial as {WEIGHT} right ones",
        f"more than {100 * WRONG_ALLOWED:.0f} % wrongly",
        f"none brought anything, and surely less than {100 * WRONG_BOUND:.0f} % will",
        f"{OWN} repeats without a wrong one suffice",
        f"surely more than {100 * HARMLESS:.0f} % of the results of others",
        f"surely less than {100 * CUT:.0f} % of at least {TIMED} successes take longer. It is {TIMEOUT_FACTOR} times their p99",
    ):
        assert said in PAGE, said
    assert (SESSIONS, POLLS, HOPELESS) == (3, 0.5, 0.5), "three sessions, more than half"
