"""
`guardrails repeats`: the repeat model from records, whole or with one's own base rate (MISSION A12).
"""

import json

from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails import Policy
from guardrails.cli import app
from guardrails.core.repetition.learned.model_format import repeat_model


def run(*arguments: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, ["repeats", *map(str, arguments)])


def lines(name: str, *, dull: int) -> str:
    """
    24 sessions of a search; in *dull* of four, it is made three times over with the same result.
    """
    made = []
    for n in range(24):
        repeats = n % 4 < dull
        results = [f"r{n}"] * 3 if repeats else [f"r{n}", f"news of {n}"]
        made += [
            {"tool": "find", "arguments": {"q": n}, "result": result, "session_id": f"{name}{n}", "call_index": at}
            for at, result in enumerate(results)
        ]
    return "".join(json.dumps({"source": name, "is_error": False, **call}) + "\n" for call in made)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = []
    for name, dull in (("a", 3), ("b", 3), ("own", 1)):
        found.append(tmp_path / f"{name}.jsonl")
        found[-1].write_text(lines(name, dull=dull))
    return found


def test_a_whole_model_is_learned_and_a_source_judged_by_one_that_has_not_seen_it(
    files: list[Path], tmp_path: Path
) -> None:
    made = run(*files[:2], "-o", tmp_path / "m.json", "--base", "a")
    assert made.exit_code == 0, made.output
    assert "132 calls read" in made.stdout
    assert "left out" in made.stdout
    assert "written to" in made.stdout
    assert repeat_model(str(tmp_path / "m.json")).body["training"]["base"] == ["a"]


def test_a_deployment_fits_its_own_base_rate_and_its_policy_loads_the_file(files: list[Path], tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    made = run(files[2], "-o", own, "--from", "default", "--json")
    assert made.exit_code == 0, made.output
    told = json.loads(made.stdout)["adapted"]
    assert told["nothing_new"] == 12
    assert repeat_model(str(own)).intercept != told["intercept_before"]
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nloops: {model: own.json}\n")
    assert Policy.load(policy).session("s").call("find", {"q": 1}, lambda tool, arguments: "x").status == "success"


def test_it_says_how_often_nothing_new_came(files: list[Path], tmp_path: Path) -> None:
    made = run(files[2], "-o", tmp_path / "own.json", "--from", "default")
    assert "12 of 30 calls that it is asked about brought nothing new (40.0 %)" in " ".join(made.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.jsonl"], "one source cannot be left out of itself"),
        (["a.jsonl", "b.jsonl", "--base", "c"], "there is no source `c`"),
        (["a.jsonl", "--from", "default", "--base", "a"], "`--base` goes with a whole training"),
        (["a.jsonl", "--from", "none.json"], "the repeat model `none.json` cannot be read"),
        (["a.jsonl", "--from", "a.jsonl"], "the repeat model `a.jsonl` cannot be used"),
        (["none.jsonl"], "`none.jsonl`"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_written(
    arguments: list[str], said: str, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files[0].parent)
    made = run(*arguments, "-o", "m.json")
    assert made.exit_code == 2
    assert said in made.stderr
    assert not (tmp_path / "m.json").exists()
