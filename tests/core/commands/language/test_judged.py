"""
What a script would do, and where, as an allow list is held against it.
"""

import pytest

from guardrails.core.commands import NotPlainError, UnreadableError
from guardrails.core.commands.language import (
    Judged,
    OutsideError,
    is_data,
    is_harmless,
    judged,
    prepared,
    read,
    to_data,
)


def found(text: str) -> Judged:
    return judged(read(text))


def ran(text: str) -> list[tuple[list[str], list[str]]]:
    return [([" ".join(each.words) for each in run.commands], list(run.folders)) for run in found(text).runs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls | wc", [(["ls"], ["."]), (["wc"], ["."])]),
        ("cd a && ls", [(["ls"], ["a"])]),
        ("cd a; ls", [(["ls"], [".", "a"])]),
        ("cd a || ls", [(["ls"], ["."])]),
        ("cd a && cd b && ls; pwd", [(["ls"], ["a/b"]), (["pwd"], [".", "a", "a/b"])]),
        ("cd a && ls || pwd", [(["ls"], ["a"]), (["pwd"], [".", "a"])]),
        ("cd a && cd .. && ls", [(["ls"], ["."])]),
        ("(cd a && ls); pwd", [(["ls"], ["a"]), (["pwd"], ["."])]),
        ("cd /w/x && ls", [(["ls"], ["/w/x"])]),
        ("cd a/../b/./c && ls", [(["ls"], ["b/c"])]),
        ("timeout 5 ls src", [(["timeout 5 ls src", "ls src"], ["."])]),
        ("sh -c 'ls | cat'", [(["sh -c ls | cat", "ls", "cat"], ["."])]),
        ("sh <<'E'\nls | cat\nE", [(["sh", "ls", "cat"], ["."])]),
        ("test -v 'x[$(id)]'", [(["test -v x[$(id)]"], ["."])]),
    ],
)
def test_programs_are_found_with_what_they_start_and_the_folders_they_may_run_in(
    text: str, expected: list[tuple[list[str], list[str]]]
) -> None:
    assert ran(text) == expected


def test_what_stands_for_names_of_files_is_unknown_and_no_option() -> None:
    (run,) = found("cat src/*.py -*").runs
    (command,) = run.commands
    assert run.words == ("cat", "src/*.py", "-*")
    assert command.words == ("cat", "src/\0.py", "-*")
    assert command.globs == {1}


def test_files_are_seen_from_the_workspace() -> None:
    said = found("cd a && b > x.txt 2>&1 >> ../y.log < in.txt 2>/dev/null; c > /w/z")
    assert said.writes[:2] == ["a/x.txt", "y.log"]
    assert said.runs[0].reads == ("in.txt",)
    assert set(said.absolute) == {"/w/z"}


def test_variables_are_told_with_their_values() -> None:
    assert found("A=b C='d e' f").variables == ["A=b", "C=d e"]


@pytest.mark.parametrize(
    "text",
    ["cd ..", "cd a && cd ../..", "ls > ../x", "ls < ../x", "cd a && ls > ../../x", "(cd a/../..)", "cd a/../../b"],
)
def test_a_script_that_leaves_the_workspace_is_refused(text: str) -> None:
    with pytest.raises(OutsideError) as raised:
        found(text)
    assert raised.value.advice


def test_a_folder_that_depends_on_an_earlier_cd_is_asked_to_be_joined_to_it() -> None:
    with pytest.raises(OutsideError, match="if a `cd` before it fails") as raised:
        found("cd a; ls; cd ..; ls")
    assert "write `&&` behind each `cd`" in str(raised.value.advice)
    assert ran("cd a && ls; cd b && ls")[1] == (["ls"], ["a/b", "b"])


@pytest.mark.parametrize("text", ["sh -c 'ls $HOME'", "sh <<'E'\nls\nid\nE", "timeout 5 bash -c 'ls > x'"])
def test_text_for_a_shell_that_a_program_starts_is_held_to_the_plain_form(text: str) -> None:
    with pytest.raises(NotPlainError):
        found(text)


@pytest.mark.parametrize("text", ["env -S 'ls' x", "timeout * ls", "".join(f"cd a{n}; " for n in range(20))])
def test_where_nobody_can_say_what_runs_or_where_it_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        found(text)


@pytest.mark.parametrize("text", ["cat x | sh", "sh < x.txt", "(sh) < x.txt", "cat x | (ls; sh)"])
def test_a_shell_that_reads_what_nobody_knows_is_in_doubt(text: str) -> None:
    assert found(text).doubts


@pytest.mark.parametrize(
    "path", ["out.txt", "a/b/run.log", "r.json", "notes.md", "x.CSV", "build/report.html", "out", "x", "sorted2"]
)
def test_plain_data_needs_no_rule(path: str) -> None:
    assert is_data(path)


@pytest.mark.parametrize(
    "path",
    [
        "Makefile",
        "run.sh",
        "a.py",
        ".env",
        ".git/x.txt",
        "a/.b/c.log",
        "package.json",
        "tsconfig.json",
        "x/package-lock.json",
        "CMakeLists.txt",
        "requirements.txt",
        "requirements-dev.txt",
        "AGENTS.md",
        "CLAUDE.md",
        "pom.xml",
        "settings.json",
        "conftest.py",
        "txt",
        "a.d/",
        "jest.config.json",
        "deno.json",
        "composer.json",
        "config",
        "run",
        "src/.x/out",
    ],
)
def test_what_a_program_may_take_for_instructions_needs_one(path: str) -> None:
    assert not is_data(path)


@pytest.mark.parametrize(
    "said", ["LANG=C", "LC_ALL=C.UTF-8", "TZ=Europe/Rome", "NO_COLOR=1", "CI=true", "GIT_PAGER=cat", "PAGER="]
)
def test_how_something_looks_needs_no_rule(said: str) -> None:
    assert is_harmless(said)


@pytest.mark.parametrize(
    "said",
    [
        "PATH=.",
        "LD_PRELOAD=x",
        "LANG=/x",
        "TZ=/x",
        "TZ=:x",
        "TZ=../x",
        "PAGER=sh",
        "GIT_PAGER=./x",
        "BASH_ENV=x",
        "X=1",
        "TERM=../x",
        "PYTHONWARNINGS=x",
        "NODE_OPTIONS=-r x",
        "CI=$x",
        "LC_ALL=a b",
    ],
)
def test_what_may_change_what_runs_needs_one(said: str) -> None:
    assert not is_harmless(said)


def test_a_program_that_only_reads_is_started_so_that_no_settings_of_a_repository_start_anything() -> None:
    script = read("cd a && git diff *.py | (git log; make)")
    assert prepared(script, ()) is script
    made = to_data(prepared(script, ("git",)))
    words = made["steps"][1][1][0]["words"]
    assert words[0] == ["git"]
    assert words[-1] == [["*"], ".py"]
    assert ["--no-ext-diff"] in words
    assert dict(made["steps"][1][1][0]["assignments"])["GIT_OPTIONAL_LOCKS"] == "0"
    inner = made["steps"][1][1][1]["steps"]
    assert inner[1][1][0] == to_data(script)["steps"][1][1][1]["steps"][1][1][0]


def test_a_program_that_may_do_more_is_started_as_it_is_written() -> None:
    script = read("git commit -m x")
    assert to_data(prepared(script, ("git",))) == to_data(script)
