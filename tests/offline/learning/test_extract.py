"""
A11: records of any kind become cells; nothing is counted twice, whatever files, clocks and processes do.
"""

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guardrails import Policy, Retryable
from guardrails.core.retries.labels import INVALID, NO_ACTION, CallRow, labelled
from guardrails.core.retries.spec import FeatureSpec
from guardrails.core.values.errors import TrainingError
from guardrails.offline.learning.extract import extract
from guardrails.offline.learning.rows import counting
from guardrails.offline.learning.rows.cell_folder import CellFolder
from guardrails.offline.learning.rows.cells import COUNTS, UNDATED, Cell, merged
from guardrails.policy.feature_file import shipped_spec
from tests.offline.learning.made_rows import session
from tests.tables import table


SPEC = shipped_spec()
DAY = 20_000
START = DAY * 86_400_000
Line = dict[str, Any]


def line(name: str, n: int, row: CallRow, run: str = "r") -> Line:
    """
    The record of a row as the library writes it, as far as it is read.
    """
    head = {"schema_version": 1, "session_id": name, "run": run, "n": n, "tool": row.tool, "sig": row.sig}
    if row.error_type == INVALID:
        said = {"event": "call", "ts_ms": row.ended_ms, "decision": "deny", "code": "validation.arguments"}
        return {**head, **said, "arguments": {"x": [1, 2]}}
    return {
        **head,
        "event": "settle",
        "ts_ms": row.ended_ms,
        "duration_ms": None if row.started_ms is None or row.ended_ms is None else row.ended_ms - row.started_ms,
        "elapsed_ms": row.elapsed_ms,
        "status": "error" if row.error_type else "ok",
        "error_type": row.error_type,
        "retry_after_ms": row.retry_after_ms,
        "mutates": row.changes,
        "retry_source": row.source,
        "late": False,
        "result": {"text": "found"},
    }


def failing(name: str = "s", tool: str = "t", at: int = START, run: str = "r") -> list[Line]:
    """
    A failure, and its retry a second later, which works.
    """
    rows = [CallRow(tool, 1, "timeout", at, at, 0), CallRow(tool, 1, None, at + 1_000, at + 1_000, 1_000)]
    return [line(name, n, row, run) for n, row in enumerate(rows, 1)]


def many(seed: int = 1, sessions: int = 40) -> list[Line]:
    """
    Records of sessions that take place at the same time, in the order of time.
    """
    rng = random.Random(seed)
    made = []
    for number in range(sessions):
        rows = [row for row in session(rng, rng.randrange(1, 50)) if row.ended_ms is not None]
        made += [line(f"s-{number}", n, row, f"r-{seed}") for n, row in enumerate(rows, 1)]
    return sorted(made, key=lambda record: record["ts_ms"])


def write(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in lines))
    return path


def undivided(cells: Iterable[Cell]) -> list[Cell]:
    return merged(cell._replace(fold=UNDATED) for cell in cells)


def totals(cells: Iterable[Cell]) -> dict[str, float]:
    cells = list(cells)
    return {count: sum(getattr(cell, count) for cell in cells) for count in COUNTS}


def expected(lines: Iterable[Line]) -> list[Cell]:
    """
    The cells of records, by the online computer.
    """
    rows: dict[Any, list[tuple[int, CallRow]]] = {}
    for record in lines:
        ended, took = record["ts_ms"], record.get("duration_ms") or 0
        refused = record["event"] == "call"
        row = CallRow(
            record["tool"],
            record["sig"],
            INVALID if refused else record["error_type"],
            ended - took,
            ended,
            record.get("elapsed_ms"),
            record.get("retry_after_ms"),
            record.get("mutates", True),
            record.get("retry_source"),
        )
        rows.setdefault((record["session_id"], record["run"]), []).append((record["n"], row))
    return merged(_cells(rows.values()))


def _cells(sessions: Iterable[list[tuple[int, CallRow]]]) -> Iterator[Cell]:
    for told in sessions:
        calls = [row for _, row in sorted(told, key=lambda each: each[0])]
        for at, tool, error, context, action, source, n, s, fixes, fixed in labelled(SPEC, calls):
            day = (calls[at].ended_ms or 0) // 86_400_000
            yield Cell(day, UNDATED, tool, error, context, action, source, n, s, 1 - n, fixes, fixed, 0, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cells"


def test_records_become_the_cells_that_the_online_computer_tells(tmp_path: Path, folder: Path) -> None:
    lines = many()
    made = extract([write(tmp_path / "calls.jsonl", lines)], folder)
    assert undivided(made.cells) == expected(lines)
    assert made.files == 1
    assert not made.notices


@pytest.mark.system
def test_batches_files_and_formats_make_no_difference(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = many()
    monkeypatch.setattr(counting, "BATCH_ROWS", 300)
    whole = extract([write(tmp_path / "calls.jsonl", lines)], folder).cells
    monkeypatch.setattr(counting, "MOST_SCANS", 2)
    apart = extract([tmp_path / "calls.jsonl"], tmp_path / "apart").cells
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "calls.jsonl.gz").write_bytes(gzip.compress((tmp_path / "calls.jsonl").read_bytes()))
    unpacked = extract([packed], tmp_path / "unpacked").cells
    columns: tuple[str, ...] = (
        "event",
        "session_id",
        "run",
        "n",
        "tool",
        "sig",
        "ts_ms",
        "duration_ms",
        "elapsed_ms",
        "error_type",
    )
    columns += ("retry_after_ms", "mutates", "retry_source", "decision", "code")
    for half in range(2):
        part = tmp_path / "parquet" / f"bucket={half}"
        part.mkdir(parents=True)
        mine = [record for record in lines if int(record["session_id"][2:]) % 2 == half]
        table = pa.Table.from_pylist([{name: record.get(name) for name in columns} for record in mine])
        pq.write_table(table, part / "part.parquet")
    parquet = extract([tmp_path / "parquet"], tmp_path / "from-parquet", whole_by="bucket").cells
    assert undivided(whole) == undivided(apart) == undivided(unpacked) == undivided(parquet) == expected(lines)


@table("parts", [2, 5])
def test_a_log_that_grows_is_read_on_and_counts_as_if_it_had_been_whole(
    tmp_path: Path, folder: Path, parts: int
) -> None:
    lines = many()
    # All within the time that sessions may go on.
    lines = [{**record, "ts_ms": START + (record["ts_ms"] % 6_000_000)} for record in lines]
    lines.sort(key=lambda record: record["ts_ms"])
    for number, record in enumerate(lines):
        record["n"] = number
    path = tmp_path / "calls.jsonl"
    for part in range(1, parts + 1):
        made = extract([write(path, lines[: len(lines) * part // parts])], folder)
    assert undivided(made.cells) == expected(lines)
    assert not made.notices


def test_what_was_counted_is_not_read_again_though_it_is_renamed(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", many())
    before = extract([path], folder)
    path.rename(tmp_path / "calls.jsonl.1")
    write(path, failing())
    after = extract([tmp_path / "calls.jsonl.1", path], folder)
    assert after.files == 1
    assert totals(after.cells)["n"] == totals(before.cells)["n"] + 1
    assert extract([tmp_path], folder).files == 0


def test_a_last_line_without_its_end_waits_for_the_next_run(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    text = path.read_text()
    path.write_text(text[:-30])
    assert totals(extract([path], folder).cells) | {"n": 0, "unlabelled": 1} == totals(extract([path], folder).cells)
    path.write_text(text)
    assert totals(extract([path], folder).cells) | {"n": 1, "s": 1, "unlabelled": 0} == totals(
        extract([path], folder).cells
    )


@table("together", [True, False])
def test_records_that_are_packed_too_count_once(tmp_path: Path, folder: Path, together: bool) -> None:
    made = many()
    plain = write(tmp_path / "calls.jsonl", made)
    packed = tmp_path / "calls.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    if together:
        found = extract([tmp_path], folder)
        assert found.notices == [f"`{packed}`: left out: a copy of `{plain}`"]
    else:
        extract([plain], folder)
        found = extract([packed], folder)
        assert found.files == 0
    assert undivided(found.cells) == expected(made)


def test_what_was_added_before_a_file_was_packed_is_read_on(tmp_path: Path, folder: Path) -> None:
    made = many()
    plain, packed = write(tmp_path / "calls.jsonl", made[: len(made) // 2]), tmp_path / "calls.jsonl.gz"
    extract([plain], folder)
    packed.write_bytes(gzip.compress(write(plain, made).read_bytes()))
    for files in (1, 0):
        found = extract([packed], folder)
        assert found.files == files
        assert undivided(found.cells) == expected(made)
    assert extract([plain], folder).files == 0


def test_a_pipe_or_a_dead_link_in_a_folder_holds_nothing_up(tmp_path: Path, folder: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    os.mkfifo(given / "pipe")
    (given / "gone").symlink_to(tmp_path / "nowhere")
    (given / "cut.parquet").write_bytes(b"PAR1 cut off")
    write(given / "calls.jsonl", failing())
    found = extract([given], folder)
    assert totals(found.cells)["n"] == 1
    assert found.notices == [f"`{given / 'cut.parquet'}`: skipped: a Parquet file that is cut off"]
    with pytest.raises(TrainingError, match="is neither a file nor a folder"):
        extract([given / "pipe"], folder)


def test_lines_that_cannot_be_used_are_told_and_skipped(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    other = {**failing("other")[0], "schema_version": 2}
    path.write_text(path.read_text() + '{"broken\n[1]\n' + json.dumps(other) + "\n" + '{"session_id": 7, "n": "x"}\n')
    made = extract([path], folder)
    assert totals(made.cells)["n"] == 1
    assert [notice.partition(": ")[2] for notice in made.notices] == [
        "3 lines that are no records are skipped",
        "1 lines of a schema version that is not known are skipped",
    ]


def test_lives_of_one_name_are_different_sessions(tmp_path: Path, folder: Path) -> None:
    one, two = failing(run="a")[0], failing(run="b")[1]
    made = extract([write(tmp_path / "1.jsonl", [one]), write(tmp_path / "2.jsonl", [two])], folder)
    assert totals(made.cells)["unlabelled"] == 1
    first, second = failing("t", run="a")
    write(tmp_path / "1.jsonl", [one, first])
    made = extract([tmp_path / "1.jsonl", write(tmp_path / "3.jsonl", [second])], folder)
    assert totals(made.cells)["n"] == 1


def test_late_outcomes_and_other_refusals_do_not_count(tmp_path: Path, folder: Path) -> None:
    failure, retry = failing()
    refusal = {**failing("x")[0], "event": "call", "decision": "deny", "code": "budget.max_calls"}
    path = write(
        tmp_path / "calls.jsonl", [failure, {**retry, "late": True}, refusal, {**retry, "n": 3, "ts_ms": START + 9}]
    )
    assert totals(extract([path], folder).cells)["n"] == 1


@table("tool", ["a'; DROP TABLE calls; --", 'x"y', "two\nlines", "\u2028 \U0001f600", "{}", "$1"])
def test_a_tool_may_have_any_name(tmp_path: Path, tool: str) -> None:
    path = write(tmp_path / 'it\'s a "log".jsonl', failing(tool=tool))
    (cell,) = extract([path], Path(tempfile.mkdtemp(dir=tmp_path))).cells
    assert (cell.tool, cell.n, cell.s) == (tool, 1, 1)


def test_a_clock_that_goes_back_labels_nothing(tmp_path: Path, folder: Path) -> None:
    failure, retry = failing()
    path = write(tmp_path / "calls.jsonl", [failure, {**retry, "ts_ms": START - 5_000}])
    assert totals(extract([path], folder).cells)["unlabelled"] == 1


def test_a_clock_far_in_the_future_does_not_make_all_else_old(tmp_path: Path, folder: Path) -> None:
    made = extract([write(tmp_path / "a.jsonl", [*failing(), *failing("late", at=5_000_000_000_000)])], folder)
    assert made.newest_day == DAY


@table("times", [None, -5, 10**17])
def test_records_without_times_have_no_day(tmp_path: Path, times: int | None) -> None:
    path = write(tmp_path / "calls.jsonl", [{**record, "ts_ms": times, "elapsed_ms": None} for record in failing()])
    (cell,) = extract([path], Path(tempfile.mkdtemp(dir=tmp_path))).cells
    assert (cell.day, cell.n) == (UNDATED, 1)
    assert SPEC.decode_action(cell.action)["delay"] == 0


def test_an_empty_log_and_a_day_without_labels_are_no_fault(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    made = extract([tmp_path / "empty.jsonl"], folder)
    assert (made.cells, made.newest_day, made.files) == ([], UNDATED, 0)
    made = extract([write(tmp_path / "a.jsonl", failing()[:1])], folder)
    assert totals(made.cells) | {"n": 0, "unlabelled": 1} == totals(made.cells)
    with pytest.raises(TrainingError, match="no file or folder"):
        extract([tmp_path / "missing"], folder)


def test_transcripts_count_too_and_are_not_counted_again_when_they_change(tmp_path: Path, folder: Path) -> None:
    call = {"session_id": "s", "tool": "t", "arguments": {"q": 1}, "is_error": True, "error_type": "timeout", "ts": 1e9}
    worked = {**call, "is_error": False, "error_type": None, "ts": 1e9 + 3}
    path = write(tmp_path / "calls.jsonl", [call, worked, {**call, "session_id": "u"}])
    made = extract([path], folder)
    assert totals(made.cells) | {"n": 1, "s": 1, "unlabelled": 1} == totals(made.cells)
    write(path, [call, worked, worked, worked])
    made = extract([path], folder)
    assert "has changed since it was counted" in made.notices[0]
    assert totals(made.cells)["n"] == 1


def test_the_newest_three_days_are_kept_apart_by_sessions(tmp_path: Path, folder: Path) -> None:
    lines = [
        record for day in range(4) for k in range(30) for record in failing(f"{day}-{k}", at=START + day * 86_400_000)
    ]
    cells = extract([write(tmp_path / "a.jsonl", lines)], folder).cells
    apart = {day: {cell.fold for cell in cells if cell.day == day} for day in range(DAY, DAY + 4)}
    assert apart[DAY] == {UNDATED}
    assert all(len(apart[DAY + day]) > 5 for day in (1, 2, 3))
    assert not any(UNDATED in apart[DAY + day] for day in (1, 2, 3))
    cells = extract([write(tmp_path / "b.jsonl", failing("new", at=START + 6 * 86_400_000))], folder).cells
    assert {cell.fold for cell in cells if cell.day < DAY + 6} == {UNDATED}


@pytest.mark.system
def test_a_hundred_thousand_tools_are_no_fault(tmp_path: Path, folder: Path) -> None:
    rows = 100_000
    table = pa.table(
        {
            "session_id": pa.array([at // 50 for at in range(rows)]),
            "n": pa.array([at % 50 for at in range(rows)]),
            "ts_ms": pa.array([START + at for at in range(rows)]),
            "tool": pa.array([f"tool-{at}" for at in range(rows)]),
            "sig": pa.array(range(rows)),
            "error_type": pa.array(["timeout"] * rows),
        }
    )
    pq.write_table(table, tmp_path / "calls.parquet")
    assert len(extract([tmp_path / "calls.parquet"], folder).cells) == rows


def test_parquet_that_holds_no_records_says_so(tmp_path: Path, folder: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    with pytest.raises(TrainingError, match="records have a column `session_id`; these have x"):
        extract([tmp_path / "a.parquet"], folder)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(TrainingError, match="cannot be counted"):
        extract([tmp_path / "b.parquet"], tmp_path / "more")


@table("data", [b"PAR1", b"PAR1 not really"])
def test_parquet_that_is_cut_off_is_left_out_also_if_it_is_named(tmp_path: Path, folder: Path, data: bytes) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(data)
    found = extract([path], folder)
    assert found.nothing
    assert found.notices == [f"`{path}`: skipped: a Parquet file that is cut off"]


def test_two_trainings_at_once_are_told_apart(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    with (
        CellFolder(folder).locked(),
        pytest.raises(TrainingError, match=rf"another training works in `.*` \(process {os.getpid()}\)"),
    ):
        extract([path], folder)
    assert totals(extract([path], folder).cells)["n"] == 1


def test_cells_of_other_features_are_not_mixed(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    extract([path], folder)
    other = FeatureSpec.parse({**SPEC.document(), "lookback": 5})
    with pytest.raises(TrainingError, match="name another folder"):
        extract([path], folder, spec=other)


def test_a_damaged_ledger_is_a_clear_error(tmp_path: Path, folder: Path) -> None:
    path = write(tmp_path / "calls.jsonl", failing())
    extract([path], folder)
    (folder / "ledger.json").write_text("{")
    with pytest.raises(TrainingError, match="delete the folder"):
        extract([path], folder)


KILLED = """
import os, sys
from pathlib import Path
from guardrails.offline.learning import extract
from guardrails.offline.learning.rows import counting
counting.BATCH_ROWS = 100
def progress(done, total, what):
    if done > total // 2:
        os.kill(os.getpid(), 9)
extract.extract([sys.argv[1]], Path(sys.argv[2]), progress=progress)
"""


@pytest.mark.system
def test_a_run_that_was_killed_changes_nothing_and_is_resumed(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = many()
    path = write(tmp_path / "calls.jsonl", lines)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, path, folder], check=False, env={**os.environ, "PYTHONPATH": "."}
    )
    assert killed.returncode == -9
    assert not (folder / "ledger.json").exists()
    done = set(folder.glob("work/cells-*.parquet"))
    assert done
    stamps = {file: file.stat().st_mtime_ns for file in done}
    seen: dict[Path, int] = {}
    monkeypatch.setattr(counting, "BATCH_ROWS", 100)

    def watch(*_: object) -> None:
        seen.update({file: file.stat().st_mtime_ns for file in done - seen.keys() if file.exists()})

    # What is appended meanwhile is counted after it, by a run of its own.
    write(path, [*lines, *failing("later", at=lines[-1]["ts_ms"])])
    made = extract([path], folder, progress=watch)
    assert seen.items() >= stamps.items()
    assert undivided(made.cells) == expected([*lines, *failing("later", at=lines[-1]["ts_ms"])])
    assert not (folder / "work").exists()


def test_what_the_library_logs_is_what_training_finds(tmp_path: Path, folder: Path, clock: Any) -> None:
    """A9, A10: no context that serving computed differs from the one of the log."""
    rng = random.Random(3)
    log = tmp_path / "calls.jsonl"
    policy = Policy([Retryable(model=str(tmp_path / "retry.json"))])
    failures = 0

    def execute(tool: str, arguments: dict[str, Any]) -> str:
        clock.advance(rng.choice((0.1, 2, 40)))
        if rng.random() < 0.6:
            raise rng.choice((TimeoutError, ConnectionError, ValueError))("no")
        return "found"

    for number in range(20):
        with policy.session(f"s-{number}", clock=clock, records=log) as made:
            for _ in range(40):
                tool, argument = rng.choice(("search", "book")), rng.randrange(4)
                envelope = made.call(tool, {"n": argument}, execute)
                failures += envelope.error_type is not None
                clock.advance(rng.choice((0.0, 1, 10, 300)))
    found = totals(extract([log], folder).cells)
    assert found["n"] + found["unlabelled"] == failures
    assert found["logged"] == failures
    assert found["skewed"] == 0


def test_calls_that_run_at_the_same_time_are_seen_as_they_settle(tmp_path: Path, folder: Path, clock: Any) -> None:
    """A10: serving knows of a call once it is over, and training knows no more; late outcomes are nobody's."""
    rng = random.Random(4)
    log = tmp_path / "calls.jsonl"
    policy = Policy([Retryable(model=str(tmp_path / "retry.json"))])
    for number in range(10):
        with policy.session(f"s-{number}", clock=clock, records=log) as made:
            running = []
            for at in range(60):
                arguments = {"n": rng.randrange(30)}
                running.append(made.decide(rng.choice(("search", "book")), arguments, id=f"call-{at}"))
                clock.advance(rng.choice((0.0, 0.5, 5, 700 if at % 20 == 0 else 1)))
                while len(running) > rng.randrange(4):
                    decision = running.pop(rng.randrange(len(running)))
                    if decision.allowed:
                        made.complete(decision, rng.choice((TimeoutError("no"), ConnectionError("no"), "found")))
    found = totals(extract([log], folder).cells)
    assert found["logged"] > 200
    assert found["logged"] == found["n"] + found["unlabelled"]
    assert found["skewed"] == 0
    assert any(json.loads(text).get("late") for text in log.read_text().splitlines())


def test_many_runs_become_one_part(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardrails.offline.learning import extract as module

    monkeypatch.setattr(module, "MOST_PARTS", 2)
    for number in range(5):
        made = extract([write(tmp_path / f"{number}.jsonl", failing(f"s-{number}"))], folder)
    assert totals(made.cells)["n"] == 5
    assert len(list(folder.glob("part-*"))) <= 2
    assert len(list(folder.glob("carry-*"))) == 1


def test_action_codes_of_cells_are_of_the_specification(tmp_path: Path, folder: Path) -> None:
    for cell in extract([write(tmp_path / "calls.jsonl", many())], folder).cells:
        assert 0 <= cell.context < SPEC.contexts
        assert cell.action == NO_ACTION or 0 <= cell.action < SPEC.actions
