"""
Scripts that run program by program: as in a shell where they are the same, and never out of the workspace.
"""

import json
import os
import shutil
import subprocess
import sys
import time

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import guardrails

from guardrails.core.commands.language import read, to_data
from guardrails.processes.run import run_started
from guardrails.processes.sandbox import Confinement, Limits, choose


ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
FREE = Limits(memory_bytes=None, cpu_s=None, processes=None, file_bytes=None, temporary_bytes=None)
LISTED = yaml.safe_load((Path(__file__).parent / "harmless.yaml").read_text(encoding="utf-8"))
FILES = {
    **{name: f"text of {name}\nline two\n" for name in ("a.txt", "b.txt", "c.py", ".hid", "sp ace.md")},
    **{name: f"text of {name}\nline two\n" for name in ("src/x.py", "src/y.py", "src/deep/z.py", "docs/one.md")},
}


class Ran(NamedTuple):
    """
    What a script did.
    """

    code: int
    output: str
    files: dict[str, str]


def workspace(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()
    }


def ran(arguments: Any, environment: Any, folder: Path) -> Ran:
    done = subprocess.run(  # noqa: S603  harmless commands, listed here
        list(arguments),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(errors="surrogateescape"), files(folder))


def by_argv(text: str, folder: Path, **more: str) -> Ran:
    confinement = Confinement(workspace=str(folder), environment={**ENVIRONMENT, **more}, limits=FREE)
    started = choose("none").started(confinement, to_data(read(text)))
    return ran(started.arguments, started.environment, folder)


def said(text: str, folder: Path, **more: str) -> tuple[int, str]:
    found = by_argv(f"({text}) 2>&1", folder, **more)
    return found.code, found.output


SHELLS = {"both": ("bash", "dash"), "bash": ("bash",)}
CHILD = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from guardrails.processes.tree import run
order = json.load(sys.stdin)
for data, folder, environment in order:
    pid = os.fork()
    if not pid:
        for handle, path in ((0, os.devnull), (1, folder + ".out"), (2, os.devnull)):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), handle)
        os._exit(run(data, folder, environment))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(folder + ".code", "w") as file:
        file.write(str(code))
"""
"""Runs one script after another, since an interpreter for each would take most of the time."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """
    What each of the harmless texts does by argv.
    """
    base = tmp_path_factory.mktemp("scripts")
    texts = [*LISTED["both"], *LISTED["bash"]]
    places = [workspace(base / str(number) / "at") for number in range(len(texts))]
    order = [(to_data(read(text)), str(place), ENVIRONMENT) for text, place in zip(texts, places, strict=True)]
    tree = str(Path(guardrails.__file__).parents[1])
    subprocess.run(  # noqa: S603  the runner itself
        [sys.executable, "-I", "-S", "-c", CHILD, tree], input=json.dumps(order).encode(), check=True
    )
    return {
        text: Ran(
            int(place.with_suffix(".code").read_text()),
            place.with_suffix(".out").read_text(errors="surrogateescape").replace(str(place), "AT"),
            files(place),
        )
        for text, place in zip(texts, places, strict=True)
    }


@pytest.mark.parametrize(
    ("shell", "text"),
    [(shell, text) for kind, shells in SHELLS.items() for text in LISTED[kind] for shell in shells],
)
def test_a_script_does_what_it_does_in_a_shell(shell: str, text: str, scripts: dict[str, Ran], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    place = workspace(tmp_path / "at")
    done = ran((program, "-c", text), ENVIRONMENT, place)
    assert scripts[text] == done._replace(output=done.output.replace(str(place), "AT"))


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("no_such_program", 127, "no_such_program: command not found\n"),
        ("./a.txt", 126, "./a.txt: permission denied\n"),
        ("./nowhere", 127, "./nowhere: no such file or directory\n"),
        ("./src", 126, "./src: permission denied\n"),
        ("./a.txt/", 126, "./a.txt/: not a directory\n"),
        ("./plain", 126, "./plain: no program, and no `#!` line says which runs it\n"),
        ("cat < nowhere", 1, "nowhere: no such file or directory\n"),
        ("cat < src", 1, "`src` is a folder, not a file\n"),
        ("cat < fifo", 1, "`fifo` is a pipe, not a file\n"),
        ("echo > fifo", 1, "`fifo` is a pipe, not a file\n"),
        ("cd nowhere", 1, "cd: nowhere: no such file or directory\n"),
        ("cd a.txt", 1, "cd: a.txt: not a directory\n"),
        ("cd src && command -v cat && command -v no_such", 1, "/usr/bin/cat\n"),
        ("sh -c 'kill -9 $$'", 137, ""),
        ("sh -c 'kill -9 $$' | cat", 0, ""),
    ],
)
def test_what_cannot_run_says_so_with_the_exit_code_of_bash(text: str, code: int, output: str, tmp_path: Path) -> None:
    workspace(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "plain").write_text("echo x\n")
    (tmp_path / "plain").chmod(0o755)
    found = said(text, tmp_path)
    assert found == (code, output) or (found[0] == code and output.endswith("/cat\n"))


@pytest.mark.parametrize(
    "text",
    [
        "echo x > link.txt",
        "echo x > linked/new.txt",
        "echo x > dangling",
        "cat < link.txt",
        "cd linked",
        "cd out",
        "echo x > out/x.txt",
        "cat < out/hostname",
        "echo x > loop",
        "echo x > .git/config",
        "echo x > src/.GIT/x.txt",
        "echo x > hard.txt",
        "echo x >> hard.txt",
        "cd src && echo x > ../link.txt",
    ],
)
def test_no_redirection_and_no_cd_goes_by_a_link_or_to_what_is_gits_own(text: str, tmp_path: Path) -> None:
    place, outside = workspace(tmp_path / "at"), tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    for name in (".git", "src/.GIT"):
        (place / name).mkdir()
    for name, target in (
        ("link.txt", "a.txt"),
        ("linked", "src"),
        ("dangling", "new"),
        ("out", str(outside)),
        ("loop", "loop"),
    ):
        (place / name).symlink_to(target)
    (place / "hard.txt").hardlink_to(outside / "kept")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, output = said(text, place)
    assert code == 1
    assert output
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_leads_out_is_refused_where_it_runs_too(tmp_path: Path) -> None:
    place = workspace(tmp_path / "at")
    data = {"steps": [[";", [{"words": [["echo"]], "assignments": [], "redirections": [[1, ">", "../x"]]}], False]]}
    for target in ("../x", str(tmp_path / "x"), "src/../../x"):
        data["steps"][0][1][0]["redirections"] = [[1, ">", target]]  # type: ignore[index]
        started = choose("none").started(Confinement(workspace=str(place), environment=ENVIRONMENT, limits=FREE), data)
        assert ran(started.arguments, started.environment, place).code == 1
    assert not (tmp_path / "x").exists()


def test_a_path_of_the_workspace_may_be_written_out(tmp_path: Path) -> None:
    place = workspace(tmp_path / "at")
    assert said(f"cd {place}/src && echo x > {place}/new.txt && cat < {place}/new.txt && pwd", place) == (
        0,
        f"x\n{place}/src\n",
    )


def test_a_name_that_a_pattern_finds_is_never_an_option(tmp_path: Path) -> None:
    for name in ("-rf", "-x.txt", "b.txt", "new\nline.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("")
    assert said("printf '%s|' * ?rf", tmp_path) == (0, "./-rf|./-x.txt|b.txt|new\nline.txt|\udcff.txt|./-rf|")
    assert said("printf '%s|' -*", tmp_path) == (0, "-*|")


def test_a_pattern_with_many_stars_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 200)).write_text("")
    started = time.monotonic()
    assert said("echo " + "*a" * 100 + "b", tmp_path)[0] == 0
    assert time.monotonic() - started < 5


def test_more_names_than_a_program_takes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from guardrails.processes import globs

    for number in range(50):
        (tmp_path / f"{number}.x").write_text("")
    monkeypatch.setattr(globs, "MAX_FOUND", 40)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(globs.TooManyError):
        globs.expanded([["*"], ".x"])


def test_folders_of_the_search_path_that_are_relative_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "mine").chmod(0o755)
    assert said("mine", tmp_path, PATH=".::/usr/bin:/bin")[0] == 127
    assert said("mine", tmp_path, PATH=f"/usr/bin:{tmp_path}") == (0, "mine\n")
    assert said("./mine", tmp_path) == (0, "mine\n")
    assert said(f"PATH={tmp_path} mine", tmp_path) == (0, "mine\n")


def test_a_long_text_is_read_whole_from_a_here_document(tmp_path: Path) -> None:
    text = "line of some length\n" * 3_000
    assert said(f"cat <<'END' | wc -c\n{text}END\n", tmp_path)[1].strip() == str(len(text))


def test_a_program_sees_its_variables_and_where_it_is(tmp_path: Path) -> None:
    workspace(tmp_path)
    assert said("cd src && A='b c' env | grep -E '^(A|PWD|OLDPWD)=' | sort", tmp_path) == (
        0,
        f"A=b c\nOLDPWD={tmp_path}\nPWD={tmp_path}/src\n",
    )


def test_a_pipe_ends_what_writes_into_it_when_nobody_reads(tmp_path: Path) -> None:
    started = time.monotonic()
    assert said("yes | head -2; yes | true", tmp_path) == (0, "y\ny\n")
    assert time.monotonic() - started < 10


def test_d12_all_that_a_script_started_ends_at_its_time_limit(tmp_path: Path) -> None:
    confinement = Confinement(workspace=str(tmp_path), environment=ENVIRONMENT, limits=FREE)
    script = "echo before; sleep 61 | (sleep 62; echo never) | sleep 63 && echo never"
    ended = run_started(choose("none").started(confinement, to_data(read(script))), timeout=1, limit=1_000)
    assert ended.exit_code is None
    assert ended.output == "before\n"
    assert not any(f"\0{seconds}\0".encode() in command for seconds in (61, 62, 63) for command in _commands(tmp_path))


def _commands(folder: Path) -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def test_time_is_told_on_standard_error(tmp_path: Path) -> None:
    code, output = said("time echo x", tmp_path)
    assert code == 0
    assert output.startswith("x\n\nreal\t0m0.")


@pytest.mark.parametrize("name", ["bwrap", "landlock"])
def test_a_script_runs_in_a_sandbox_as_without_one(name: Any, tmp_path: Path) -> None:
    from guardrails.core.values.errors import SandboxUnavailable

    place = workspace(tmp_path)
    try:
        backend = choose(name)
        started = backend.started(
            Confinement(workspace=str(place), environment=ENVIRONMENT),
            to_data(read("cd src && cat *.py | wc -l > ../n.txt; cat ../n.txt; (ls nowhere) 2>/dev/null || echo end")),
        )
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    ended = run_started(started, timeout=30, limit=1_000)
    assert (ended.exit_code, ended.output.split()) == (0, ["4", "end"])
