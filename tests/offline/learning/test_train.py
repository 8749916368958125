"""
From records of the library to envelopes that say something else.
"""

import random
import subprocess
import sys

from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guardrails import Policy, Retryable
from guardrails.core.retries.trail import Failure, failure_of
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.facts import labelled
from guardrails.offline.learning.rows import _sorted, rows_of
from guardrails.offline.learning.train import train
from guardrails.policy.models import read_model
from tests.offline.learning.faulty_tools import Failing, play


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    play(folder / "log.jsonl")
    assert train([folder / "log.jsonl"], folder / "retry.json").written
    return folder / "retry.json"


def test_a10_records_train_a_model_that_changes_what_the_envelope_says(model: Path, tmp_path: Path, clock: Any) -> None:
    (tmp_path / "policy.yaml").write_text("version: 1\nretryable: {model: retry.json, max_wait: 60s}\n")
    policy = Policy.load(tmp_path / "policy.yaml")

    def failed(tool: str, error: Exception) -> Any:
        def fail(*_: Any) -> None:
            raise error

        return policy.session(f"s{clock.now}", clock=clock).call(tool, {"q": 1}, fail)

    before, legacy = failed("search_hotels", TimeoutError("no answer")), failed("legacy", Failing(500))
    assert (before.retryable, legacy.retryable) == (True, True)
    # The policy goes on: no restart.
    (tmp_path / "retry.json").write_bytes(model.read_bytes())
    clock.advance(60)
    after, legacy = failed("search_hotels", TimeoutError("no answer")), failed("legacy", Failing(500))
    assert (after.retryable, legacy.retryable, legacy.next_action) == (True, False, "give_up")
    assert after.retry_after_ms in (5_000, 10_000, 15_000, 30_000)
    assert after.retry_success_probability > before.retry_success_probability
    # What was never seen is judged by its kind.
    assert failed("new_tool", TimeoutError("no answer")).retryable is True
    profiles = {profile["tool"]: profile for profile in read_model(model).body["profiles"]}
    assert profiles["legacy"]["successes"] == 0
    assert profiles["search_hotels"]["wait_ms"] in (5_000, 10_000, 15_000, 30_000)
    assert 0.5 < profiles["search_hotels"]["wait_rate"] < 0.95


SERVES = """
import sys
from guardrails import Policy
def fail(tool, arguments):
    raise TimeoutError("no answer")
with Policy.load(sys.argv[1]).session("s") as session:
    print(session.call("search_hotels", {"q": 1}, fail).retry_success_probability > 0.5)
print([name for name in ("sklearn", "scipy", "numpy", "duckdb", "pyarrow", "guardrails.offline.learning") if name in sys.modules])
"""


@pytest.mark.system
def test_serving_a_model_brings_nothing_that_training_needs(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"version: 1\nretryable: {{model: {model}}}\n")
    done = subprocess.run([sys.executable, "-c", SERVES, str(file)], capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["True", "[]", ""], done.stderr


def test_force_writes_a_model_that_nothing_could_judge(tmp_path: Path) -> None:
    path, undated = tmp_path / "retry.json", tmp_path / "rows.parquet"
    errors = {(session, n): n % 2 == 0 or session % 3 == 0 for session in range(40) for n in range(6)}
    row = {"schema_version": 1, "tool": "t"}
    rows = [
        {**row, "session_id": f"s{session}", "n": n, "sig": n // 2, "error_type": "timeout" if error else None}
        for (session, n), error in errors.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), undated)
    assert not train([undated], path).written
    assert train([undated], path, force=True).written
    assert read_model(path).evidence


def test_a9_what_the_library_logs_is_what_serving_saw(tmp_path: Path, clock: Any) -> None:
    rng = random.Random(3)
    log, seen = tmp_path / "calls.jsonl", list[Failure]()
    policy = Policy([Retryable(model=str(tmp_path / "retry.json"))])

    def execute(tool: str, arguments: dict[str, Any]) -> str:
        clock.advance(rng.choice((0.1, 2, 40)))
        if rng.random() < 0.6:
            raise rng.choice((TimeoutError, ConnectionError, ValueError))("no")
        return "found"

    for number in range(20):
        with policy.session(f"s-{number}", clock=clock, records=log) as made:
            for _ in range(40):
                tool, argument = rng.choice(("search", "book")), rng.randrange(4)
                failed = made.call(tool, {"n": argument}, execute).error_type is not None
                state = made.ledger.read(lambda kept, now: kept)
                if failed:
                    seen.append(failure_of(state.own["retryable"], state.now_ms - state.started_ms))
                clock.advance(rng.choice((0.0, 1, 10, 300)))
    raw = rows_of(_sorted([str(log)], [], lambda done: None), Counter())
    sessions = [[row for _, row in calls] for _, calls in groupby(raw, key=itemgetter(0))]
    trained = [what for rows in sessions for _, what, _ in labelled(rows) if isinstance(what, Failure)]
    assert len(trained) == len(seen) > 200
    assert Counter(trained) == Counter(seen)


def test_an_empty_log_leaves_the_old_model(model: Path, tmp_path: Path) -> None:
    before, empty = model.read_bytes(), tmp_path / "empty.jsonl"
    for lines in ("", "\n", '{"a": 1}\n'):
        empty.write_text(lines)
        with pytest.raises(TrainingError, match=r"nothing to learn|no records"):
            train([empty], model)
    assert model.read_bytes() == before
