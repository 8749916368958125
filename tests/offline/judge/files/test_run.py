"""
Judging files, from the first to the last or until Ctrl-C.
"""

import gzip
import json
import signal
import sys
import threading

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Denials, Duplicates, Policy
from guardrails.offline.judge.files.checkpoint import CheckpointError
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.progress import Progress
from guardrails.offline.judge.files.run import AT_ONCE, Work, judge_files
from guardrails.offline.judge.result import Judgement
from guardrails.offline.readers import ReaderError


EVIDENCE = Policy([Duplicates(rule="evidence", window=20), Denials(max_turns_in_a_row=2)], name="evidence")
ALWAYS = Policy([Duplicates(window=5), Budget(max_calls=40)], name="always")


def line(session: str, tool: str, result: str, **more: Any) -> str:
    record = {"session_id": session, "tool": tool, "arguments": {}, "result": result, "is_error": False, **more}
    return json.dumps(record) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """
    Three files of 700 interleaved calls.
    """
    made = []
    for number in range(3):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(
            "".join(
                line(f"s{n % 7}", "ab"[n % 3 == 0], str(n // 90), ts=1_800_000_000.0 + n, tokens_in=n % 5)
                for n in range(700)
            )
        )
        made.append(str(path))
    return made


def judged(*files: str | Path, policies: tuple[Policy, ...] = (EVIDENCE,), **settings: Any) -> list[Judgement]:
    made = judge_files(Work(policies, inputs(map(str, files)), **settings))
    return [replace(judgement, seconds=0.0) for judgement in made]


def interrupting(after: int) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if progress.calls >= after:
            signal.raise_signal(signal.SIGINT)

    return tell


def test_each_file_is_a_source(files: list[str]) -> None:
    (judgement,) = judged(*files)
    assert [(tally.source, tally.sessions, tally.calls) for tally in judgement.tallies] == [
        ("0", 7, 700),
        ("1", 7, 700),
        ("2", 7, 700),
    ]
    assert judgement.finished


def test_two_policies_are_judged_in_one_reading(files: list[str]) -> None:
    both = judged(*files, policies=(EVIDENCE, ALWAYS))
    assert both == [*judged(*files), *judged(*files, policies=(ALWAYS,))]
    assert both[0].total.denied != both[1].total.denied


def test_progress_goes_by_the_bytes_of_all_files_and_on_from_a_checkpoint(files: list[str], tmp_path: Path) -> None:
    told: list[Progress] = []
    judged(*files, on_progress=told.append)
    shares = [one.share for one in told]
    assert shares == sorted(shares, key=lambda share: share or 0.0)
    assert shares[-1] == 1.0
    assert told[-1].left_s == 0.0
    checkpoint = tmp_path / "work.checkpoint"
    judged(*files, on_progress=interrupting(1_000), checkpoint=checkpoint)
    told.clear()
    judged(*files, on_progress=told.append, checkpoint=checkpoint)
    assert {round(one.before, 6) for one in told} == {round(1 / 3, 6)}


def test_ctrl_c_gives_the_figures_so_far(files: list[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    (judgement,) = judged(*files, on_progress=interrupting(AT_ONCE))
    assert not judgement.finished
    assert judgement.total.calls == AT_ONCE
    assert signal.getsignal(signal.SIGINT) is before


def test_what_was_interrupted_goes_on_from_its_checkpoint(files: list[str], tmp_path: Path) -> None:
    whole, decided = judged(*files, policies=(EVIDENCE, ALWAYS)), tmp_path / "whole.jsonl"
    judged(*files, policies=(EVIDENCE, ALWAYS), decisions=decided)
    kept = {"checkpoint": tmp_path / "work.checkpoint", "decisions": tmp_path / "parts.jsonl"}
    calls = 0
    for after in (1, AT_ONCE, 3 * AT_ONCE):
        one, other = judged(*files, policies=(EVIDENCE, ALWAYS), on_progress=interrupting(after), limit=8, **kept)
        assert not one.finished
        assert one.total.calls == other.total.calls > calls
        calls = one.total.calls
        assert kept["checkpoint"].exists()
        # What a program that died had written since is cut off again.
        with kept["decisions"].open("a") as torn:
            torn.write('{"source":')
    again = judged(*files, policies=(EVIDENCE, ALWAYS), **kept)
    assert [replace(judgement, spilled_sessions=0) for judgement in again] == whole
    assert kept["decisions"].read_text() == decided.read_text()
    assert not kept["checkpoint"].exists()


def test_a_checkpoint_is_written_now_and_then(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guardrails.offline.judge.files.run.SAVED_S", -1.0)
    checkpoint, seen = tmp_path / "work.checkpoint", []
    judged(*files, checkpoint=checkpoint, on_progress=lambda _: seen.append(checkpoint.exists()))
    assert seen[0] is False
    assert all(seen[1:])


def emptied(file: str) -> dict[str, Any]:
    Path(file).write_text("")
    return {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda files: {"policies": (ALWAYS,)}, "of another policy"),
        (lambda files: {"files": files[:2]}, "of other files"),
        (lambda files: emptied(files[0]), "has changed since"),
        (lambda files: {"checkpoint": Path(files[0])}, "is no checkpoint"),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(
    files: list[str], tmp_path: Path, change: Callable[[list[str]], dict[str, Any]], said: str
) -> None:
    settings: dict[str, Any] = {"checkpoint": tmp_path / "work.checkpoint"}
    judged(*files, on_progress=interrupting(800), **settings)
    settings |= change(files)
    with pytest.raises(CheckpointError, match=said):
        judged(*settings.pop("files", files), **settings)


def test_a_checkpoint_that_cannot_be_written_is_said(files: list[str], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot write the checkpoint"):
        judged(*files, checkpoint=tmp_path / "no" / "x", on_progress=interrupting(1))


def test_work_in_another_thread_leaves_signals_alone(files: list[str]) -> None:
    made: list[Judgement] = []
    thread = threading.Thread(target=lambda: made.extend(judged(*files)))
    thread.start()
    thread.join()
    assert made == judged(*files)


def test_more_open_sessions_than_are_kept_are_said(files: list[str]) -> None:
    (judgement,) = judged(*files, limit=5)
    assert judgement.spilled_sessions == 21
    assert judgement.notices == ["21 sessions were put out of memory while others went on"]
    assert replace(judgement, spilled_sessions=0, notices=[]) == judged(*files)[0]


def test_a_transcript_that_is_cut_off_in_a_line_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_text(line("s", "a", "1") + "nonsense\n" + line("s", "a", "1") + line("s", "a", "1")[:40])
    (judgement,) = judged(path)
    assert (judgement.total.calls, judgement.broken_lines) == (2, 2)
    assert f"`{path}`: broken lines 2, 4" in judgement.notices


def test_gzip_is_read_and_damage_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    packed = gzip.compress("".join(line("s", f"t{n}", "1" * 400) for n in range(2_000)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    (judgement,) = judged(path)
    assert 0 < judgement.total.calls < 2_000
    assert any("cut off or damaged" in notice for notice in judgement.notices)


def test_a_file_without_calls_is_skipped_with_a_notice(tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "notes.txt").write_text("no transcript\n")
    (judgement,) = judged(*files, tmp_path / "notes.txt")
    assert judgement.total.calls == 2_100
    assert any("notes.txt`: skipped" in notice for notice in judgement.notices)


def test_a_file_of_a_folder_that_cannot_be_read_is_a_notice_and_one_given_by_name_an_error(
    tmp_path: Path, files: list[str]
) -> None:
    folder = inputs([tmp_path])
    Path(files[1]).unlink()
    Path(files[1]).mkdir()
    (judgement,) = judge_files(Work([EVIDENCE], folder))
    assert judgement.total.calls == 1_400
    assert judgement.notices == [f"`{files[1]}`: cannot be read: Is a directory"]
    with pytest.raises(IsADirectoryError):
        judge_files(Work([EVIDENCE], [each._replace(found=False) for each in folder]))


def test_a_packed_file_of_a_folder_without_the_package_for_it_costs_no_other_file(
    tmp_path: Path, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    Path(files[1]).write_bytes(b"\x28\xb5\x2f\xfd and so on")
    (judgement,) = judge_files(Work([EVIDENCE], inputs([tmp_path])))
    assert judgement.total.calls == 1_400
    assert 'pip install "toolcall-guardrails[zstd]"' in judgement.notices[0]
    with pytest.raises(ReaderError, match="zstd"):
        judged(files[1])
