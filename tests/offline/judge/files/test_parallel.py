"""
Judging files in several processes.
"""

import json
import random
import signal

from collections.abc import Callable
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from guardrails import Duplicates, Policy
from guardrails.cli.text.replay import judged_text
from guardrails.offline.judge.files.inputs import Input, inputs
from guardrails.offline.judge.files.parallel import WorkerLostError, judge_in_parallel
from guardrails.offline.judge.files.progress import Progress
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.offline.judge.page.html import page
from guardrails.offline.judge.result import Judgement


SHIPPED = ["default", "strict"]


def line(session: str, n: int, **more: Any) -> str:
    said = {
        "session_id": session,
        "tool": f"t{n % 3}",
        "arguments": {"n": n % 4},
        "result": str(n % 5),
        "ts": 1.8e9 + n,
    }
    return json.dumps({**said, "is_error": n % 7 == 0, "tokens_in": n % 9, **more}) + "\n"


def written(folder: Path, chance: random.Random, *, shared: bool) -> list[str]:
    """
    Files of interleaved sessions, with calls without results and broken lines; some sources, sessions and calls are *shared*.
    """
    paths = []
    for number in range(chance.randint(3, 7)):
        path = folder / f"{number}.jsonl"
        lines = []
        for n in range(chance.randint(0, 300)):
            more: dict[str, Any] = {"id": f"{number}-{n}"} if chance.random() < 0.5 else {}
            if chance.random() < 0.3:
                more["result"] = f"{n % 2} in {n % 5} s"
            if chance.random() < 0.05:
                more["result"] = None
            if shared and chance.random() < 0.3:
                more["source"] = f"source {chance.randrange(3)}"
            own = "" if shared else f"-{number}"
            lines.append(line(f"s{chance.randrange(9)}{own}", n, **more))
        path.write_text("".join(lines) + chance.choice(["", "{broken\n"]))
        paths.append(str(path))
    if shared:
        whole = folder / "copy.jsonl"
        whole.write_text(Path(paths[0]).read_text() + line("s1", 900))
        paths.insert(chance.randrange(len(paths)), str(whole))
    return paths


def told(policies: list[Policy], files: list[Input], decisions: Path, judge: Callable[[Work], list[Judgement]]) -> Any:
    """
    All that a person gets to see, but for the seconds that it took.
    """
    found = judge(Work(policies, files, decisions=decisions))
    found = [replace(each, seconds=0.0) for each in found]
    figures = [json.dumps(each.to_dict()) for each in found]
    return found, figures, list(map(judged_text, found)), page(*found), decisions.read_bytes()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_all_that_is_told_is_what_one_process_tells(tmp_path: Path, seed: int, *, shared: bool) -> None:
    chance = random.Random(seed)
    files = inputs(written(tmp_path, chance, shared=shared))
    names = SHIPPED[: chance.randint(1, 2)]
    policies = [Policy.load(name) for name in names]
    alone = told(policies, files, tmp_path / "alone", judge_files)
    together = told(policies, files, tmp_path / "together", lambda work: judge_in_parallel(work, names, 2))
    assert together == alone


def test_why_denials_were_wrong_is_what_one_process_tells(tmp_path: Path) -> None:
    for number in range(4):
        # The calls of a file's sessions are interleaved; some results move by themselves, others by their clock.
        said = [(f"{number}-{n % 5}", n, f"{n % 10 // 5 * number} in {n} s") for n in range(40)]
        calls = (line(session, n, tool="t", arguments={}, result=result) for session, n, result in said)
        (tmp_path / f"{number}.jsonl").write_text("".join(calls))
    files, policies = inputs([str(tmp_path)]), [Policy.load("strict")]
    alone = told(policies, files, tmp_path / "alone", judge_files)
    together = told(policies, files, tmp_path / "together", lambda work: judge_in_parallel(work, ["strict"], 2))
    assert together == alone
    assert alone[0][0].total.wrong_why.keys() == {"changed", "volatile"}


def test_files_that_have_nothing_in_common_are_judged_by_other_processes(tmp_path: Path) -> None:
    files = inputs(written(tmp_path, random.Random(4), shared=False))
    seen: set[int | None] = set()

    def tell(_: Progress) -> None:
        seen.update(child.pid for child in active_children())

    judge_in_parallel(Work([Policy.load("default")], files, on_progress=tell), ["default"], 2)
    assert len(seen) == 2
    assert not active_children()


def test_a_session_in_two_files_of_one_folder_is_one_session(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for number in range(20):
            path = tmp_path / folder / f"{number:02}.jsonl"
            # Each session goes on in the next file.
            calls = (line(f"{folder}{at // 7}", at) for at in range(10 * number, 10 * number + 10))
            path.write_text("".join(calls))
        paths.append(tmp_path / folder)
    files, policies = inputs(paths), [Policy.load("default")]
    alone = told(policies, files, tmp_path / "alone", judge_files)
    together = told(policies, files, tmp_path / "together", lambda work: judge_in_parallel(work, ["default"], 2))
    assert together == alone
    assert [(tally.source, tally.sessions) for tally in alone[0][0].tallies] == [("a", 29), ("b", 29)]


def test_a_call_without_a_result_gets_the_one_that_another_process_would_have_read(tmp_path: Path) -> None:
    first, last, other = tmp_path / "first.jsonl", tmp_path / "last.jsonl", tmp_path / "other.jsonl"
    first.write_text(line("s", 1, id="c1") + line("s", 2, id="c2", result=None))
    other.write_text("".join(line("s", n) for n in range(9)))
    last.write_text(line("t", 2, id="c2"))
    files, policies = inputs([first, other, last]), [Policy.load("default")]
    alone = told(policies, files, tmp_path / "alone", judge_files)
    together = told(policies, files, tmp_path / "together", lambda work: judge_in_parallel(work, ["default"], 3))
    assert together == alone


def test_a_policy_that_is_not_the_one_of_its_name_is_judged_all_the_same(tmp_path: Path) -> None:
    files, own = inputs(written(tmp_path, random.Random(5), shared=False)), Policy([Duplicates(window=5)], name="own")
    alone = told([own], files, tmp_path / "alone", judge_files)
    assert told([own], files, tmp_path / "a", lambda work: judge_in_parallel(work, ["default"], 2)) == alone
    assert told([own], files, tmp_path / "b", lambda work: judge_in_parallel(work, ["no such policy"], 2)) == alone


def test_ctrl_c_ends_all_processes_and_gives_the_figures_so_far(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    files, asked = inputs(written(tmp_path, random.Random(6), shared=False)), list[Progress]()

    def interrupt(progress: Progress) -> None:
        if not asked:
            asked.append(progress)
            signal.raise_signal(signal.SIGINT)

    (found,) = judge_in_parallel(Work([Policy.load("default")], files, on_progress=interrupt), ["default"], 2)
    assert not found.finished
    assert not active_children()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_is_killed_ends_the_work_with_an_error(tmp_path: Path) -> None:
    files = inputs(written(tmp_path, random.Random(7), shared=False))

    def kill(_: Progress) -> None:
        for child in active_children():
            child.kill()

    with pytest.raises(WorkerLostError, match=r"was ended \(signal 9\)"):
        judge_in_parallel(Work([Policy.load("default")], files, on_progress=kill), ["default"], 2)
    assert not active_children()


def test_a_file_that_cannot_be_read_is_the_same_error(tmp_path: Path) -> None:
    files = inputs(written(tmp_path, random.Random(8), shared=False))
    Path(files[1].path).unlink()
    Path(files[1].path).symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        judge_in_parallel(Work([Policy.load("default")], files), ["default"], 2)
