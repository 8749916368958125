"""
What the jail is made from: a folder with copies of the fuzzer, of the language, and of nothing else.
"""

import ast
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from tests.shellfuzz.jailed import world


REPOSITORY: Final = Path(__file__).resolve().parents[2]
HERE: Final = Path(__file__).resolve().parent
_LANGUAGE: Final = "guardrails.core.commands.language"
TRIED: Final = (f"{_LANGUAGE}.reading", f"{_LANGUAGE}.tree", f"{_LANGUAGE}.judged", "guardrails.processes.tree")
"""What is tried; what it imports of the package goes with it, but for the fronts of the rooms."""
NOBODY: Final = 65_534
CORPUS: Final = ("commands.yaml", "honest.yaml", "plain.yaml", "started.yaml")
_PROBE: Final = (
    "import ctypes, json, sys; print(json.dumps([list(sys.version_info[:2]), sys.base_prefix, sys.executable]))"
)


class NoJailError(Exception):
    """
    Why the fuzzer does not start here.
    """


@contextmanager
def staged(
    *, subject: str = "language", holes: tuple[str, ...] = (), **work: Any
) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """
    The command that starts a jail for *work*, and its plan. Raises NoJailError.
    """
    if sys.platform != "linux":
        raise NoJailError("it needs the namespaces of Linux")
    shells = {name: shutil.which(name) for name in ("bash", "dash")}
    missing = [name for name, path in shells.items() if path is None]
    if missing:
        raise NoJailError(f"there is no {' and no '.join(missing)} here")
    base = Path(tempfile.mkdtemp(prefix="shellfuzz-"))
    try:
        base.chmod(0o755)
        stage = base / "stage"
        _copied(stage)
        python, prefix = _python(base)
        listening, abstract, canary = (
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
            base / "canary",
        )
        with listening, abstract:
            name = f"shellfuzz-{secrets.token_hex(8)}"
            abstract.bind("\0" + name)
            abstract.listen()
            canary.mkdir(mode=0o777)
            canary.chmod(0o777)
            file, token = canary / "file", secrets.token_hex(16)
            file.write_text(token, encoding="ascii")
            file.chmod(0o666)
            (base / "root").mkdir()
            plan = {
                "root": str(base / "root"),
                "stage": str(stage),
                "python": python,
                "prefix": prefix,
                "shells": shells,
                "repository": str(REPOSITORY),
                "homes": _homes(),
                "canary": {"file": str(file), "token": token, "port": listening.getsockname()[1], "socket": name},
                "holes": list(holes),
                "subject": subject,
                "corpus": corpus(),
                "pieces": yaml.safe_load((HERE / "pieces.yaml").read_text(encoding="utf-8")),
                "texts": [],
                "first": 0,
                "step": 1,
                **work,
            }
            written = stage / "plan.json"
            written.write_text(json.dumps(plan), encoding="ascii")
            yield (
                [
                    python if prefix is None else f"{prefix}/{python}",
                    "-I",
                    "-S",
                    "-B",
                    str(stage / "tests/shellfuzz/jail.py"),
                    str(written),
                ],
                plan,
            )
            if file.read_text(encoding="ascii") != token or len(list(canary.iterdir())) != 1:
                raise NoJailError("the canary outside was touched")
    finally:
        shutil.rmtree(base, ignore_errors=True)


def as_nobody() -> dict[str, Any]:
    """
    The options by which `subprocess` gives up the rights of root; none for who has none.
    """
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def corpus() -> list[str]:
    """
    The texts of the tests of commands.
    """
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    for name in CORPUS:
        path = REPOSITORY / "tests/core/commands" / name
        if path.is_file():
            walk(yaml.safe_load(path.read_text(encoding="utf-8")))
    return sorted({text for text in found if text})


def _homes() -> list[str]:
    homes = {
        str(Path.home()),
        os.environ.get("HOME", ""),
        *(each.pw_dir for each in pwd.getpwall() if each.pw_uid in (0, os.getuid())),
    }
    return sorted(home for home in homes if home.startswith("/") and home != "/" and Path(home).exists())


def _copied(stage: Path) -> None:
    """
    Fill *stage* with the fuzzer, the programs and what is tried.
    """
    (stage / "programs").mkdir(parents=True)
    for name in world.PROGRAMS:
        path = stage / "programs" / name
        path.write_text(world.LOGGER, encoding="utf-8")
        path.chmod(0o755)
    disabled = " ".join(f"'{name}'" for name in world.BUILTINS)
    (stage / "setup.bash").write_text(f"enable -n {disabled}\nunset BASH_ENV\n", encoding="ascii")
    own = [HERE / "jail.py", *sorted((HERE / "jailed").glob("*.py"))]
    for source in [*own, *needed(TRIED)]:
        target = stage / source.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def needed(modules: tuple[str, ...]) -> list[Path]:
    """
    The files of *modules* of the package, and of all that they import of it, without the fronts of the rooms.
    """
    waiting, found = [*modules], dict[str, Path]()
    while waiting:
        name = waiting.pop()
        path = REPOSITORY / Path(*name.split("."))
        path = path.with_suffix(".py")
        if name in found or not path.is_file():
            continue
        found[name] = path
        package = name.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                above = package[: len(package) - node.level + 1] if node.level else []
                full = ".".join([*above, *(node.module.split(".") if node.module else [])])
                waiting += [full, *(f"{full}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
    return list(found.values())


def _python(base: Path) -> tuple[str, str | None]:
    """
    A Python that whoever has no rights can start, and the folder that it needs beside the libraries of the system.
    """
    tried = []
    for python in ("/usr/bin/python3", getattr(sys, "_base_executable", sys.executable)):
        try:
            done = subprocess.run(
                [python, "-I", "-S", "-c", _PROBE], capture_output=True, text=True, check=True, cwd=base, **as_nobody()
            )
            version, prefix, executable = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            tried.append(f"{python} cannot be started without rights ({error})")
            continue
        real = Path(executable).resolve()
        if tuple(version) < (3, 11):
            tried.append(f"{python} is older than 3.11")
        elif prefix == "/usr":
            return str(real), None
        else:
            return str(real.relative_to(Path(prefix).resolve())), str(Path(prefix).resolve())
    raise NoJailError("; ".join(tried))


def tried_here() -> list[str]:
    """
    Which of what is tried is not in this revision.
    """
    return [name for name in TRIED if not needed((name,))]
