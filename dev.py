#!/usr/bin/env python3
"""
Set up and check this repository: python3 dev.py TARGET [ARGUMENT...]

    demo      show a stuck agent without and with guards
    test      the tests that start nothing, as many at once as there are cores
    system    the others: processes, sockets, servers, browsers, sandboxes
    lint      ruff and its format; the order of the rooms
    type      mypy
    policies  check the shipped policies, and hold them to their cases
    bench     a short run of the benchmarks, or of the files that are named
    oracle    decisions, meaning and text of all that is promised, compared with what is frozen in tests/oracle
    weight    lines of code by room, held to the table in pyproject.toml
    hosts     the adapters with their hosts' real packages, an environment each in .hosts (or the hosts that are named)
    docs      build the site into .site; a broken link and a warning fail
    ci        the gate: .ci/run

It needs Python 3.11 or newer with `venv`, and uses `uv` where that is on the PATH. A target installs what it needs into
.venv, and again only when pyproject.toml or the version has changed. Arguments go to the program of the target.
"""
# ruff: noqa: UP031, UP036 (an old Python must be able to read it)

import hashlib
import os
import shutil
import subprocess
import sys

from pathlib import Path


ROOT = Path(__file__).resolve().parent
EXTRAS = ("openai", "test", "dev")  # each holds those before it
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
PYTEST = ("-m", "pytest", "-q")
# Half as many again as there are cores, since many tests wait; a worker that is done takes over tests of the others.
MANY = ("-n", CORES + CORES // 2, "--dist", "worksteal") if CORES > 1 else ()
BENCH = ("--benchmark-enable", "--benchmark-max-time=0.1", "--benchmark-min-rounds=3", "--benchmark-columns=median")
POLICY = ("-m", "guardrails", "policy")
SHIPPED = sorted(f"policies/{file.name}" for file in ROOT.glob("policies/*.yaml"))
ROOMS = ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
STEPS = {
    "demo": [("openai", "-m", "guardrails", "demo")],
    "test": [("test", *PYTEST, *MANY, "-m", "not system", "--ignore=tests/system")],
    "system": [("test", *PYTEST, *MANY, "-m", "system")],
    "lint": [("dev", "-m", "ruff", "check", "."), ("dev", "-m", "ruff", "format", "--check", "."), ("dev", *ROOMS)],
    "type": [("dev", "-m", "mypy")],
    "policies": [("openai", *POLICY, "check", *SHIPPED), ("openai", *POLICY, "test")],
    "bench": [("test", *PYTEST, *BENCH)],
    "oracle": [("test", "-m", "tests.oracle")],
    "weight": [("", "weight.py")],
}


def run(*command, quiet=False):
    """The exit code of a command, and what it printed where it is *quiet*."""
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=quiet, text=True, check=False)
    except OSError as error:
        return 1, str(error)
    said = done.stdout + (done.stderr if done.returncode else "") if quiet else ""
    return abs(done.returncode), said.strip()  # negative for a signal, which is no success


def fail(message):
    """End with exit code 2 and one clear message."""
    print(message, file=sys.stderr)
    sys.exit(2)


def make(venv, base, uv):
    """A new environment of the interpreter *base* in place of whatever *venv* is."""
    venv.unlink() if venv.is_symlink() or venv.is_file() else shutil.rmtree(venv, ignore_errors=True)
    code, text = run(*([uv, "venv", "--python", base] if uv else [base, "-m", "venv"]), venv, quiet=True)
    if code:
        shutil.rmtree(venv, ignore_errors=True)
        bare = not uv and run(base, "-c", "import venv; from ensurepip import version", quiet=True)[0]
        fail("this Python has no `ensurepip`; on Debian and Ubuntu: apt-get install python3-venv" if bare else text)


def ready(extra, folder=".venv", packages=(), base=None):
    """The interpreter of the environment *folder*, with *packages*, and *extra* as pyproject.toml now has it."""
    venv, uv = ROOT / folder, shutil.which("uv")
    python, stamp = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), venv / "installed.txt"
    read = [file for file in (ROOT / "pyproject.toml", ROOT / "guardrails/core/values/version.py") if file.is_file()]
    digest = " ".join((hashlib.sha256(b"".join(file.read_bytes() for file in read)).hexdigest(), *packages))
    works = run(python, "-c", VERSION, quiet=True) == (0, "%d.%d" % sys.version_info[:2])
    enough = EXTRAS[EXTRAS.index(extra) :] if extra in EXTRAS else (extra,)
    if works and stamp.is_file() and stamp.read_text() in {f"{digest} {e}" for e in enough}:
        return python
    if not works or (not uv and run(python, "-m", "pip", "--version", quiet=True)[0]):
        make(venv, base or getattr(sys, "_base_executable", sys.executable), uv)
    stamp.unlink(missing_ok=True)
    print(f"installing .[{extra}] into {folder}", file=sys.stderr)
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    if run(*install, "--quiet", *packages, "--editable", f".[{extra}]")[0]:
        fail(f"the installation failed; {folder} is kept, the next run goes on from there")
    stamp.write_text(f"{digest} {extra}")
    return python


def hosts(*names):
    """The tests of each adapter with its host's packages, in an environment of its own; the worst exit code."""
    import tomllib

    versions = tomllib.loads((ROOT / "tests/hosts/versions.toml").read_text())
    tools, worst = versions.pop("tests")["packages"], 0
    options = "-ra --strict-markers --strict-config --import-mode=importlib -p no:cacheprovider"
    for name in [name.replace("-", "_") for name in names] or versions:
        if name not in versions:
            fail(f"there is no host `{name}`; there are {', '.join(versions)}")
        python = ready(versions[name]["extra"], f".hosts/{name}", (*tools, *versions[name]["packages"]))
        files = sorted(ROOT.glob(f"tests/hosts/test_{name}*.py"))
        held = f"tests/hosts/test_blast_radius.py::test_a_host_that_is_installed_here_holds_what_it_owes[{name}]"
        print(f"--- {name}", flush=True)
        worst = max(worst, run(python, *PYTEST, "--timeout=120", "-o", f"addopts={options}", *files, held)[0])
    return worst


def docs(folder=".site"):
    """The site, in an environment of its own; the exit code."""
    options = ("-W", "--keep-going", "-q", "-j", "auto", "-b", "html", "-c", "docs")
    return run(ready("docs", ".venv-docs"), "-m", "sphinx", *options, ".", folder)[0]


def main(target="help", *arguments):
    """Run one target; its exit code."""
    if target in {"hosts", "docs", "ci"}:
        return {"hosts": hosts, "docs": docs, "ci": lambda: run("bash", ".ci/run")[0]}[target](*arguments)
    if target not in STEPS:
        print(__doc__.strip())
        return (
            0 if target in {"help", "-h", "--help"} else fail(f"there is no target `{target}`; they are listed above")
        )
    if target == "bench" and not any(word.endswith(".py") or "::" in word for word in arguments):
        arguments = ("benchmarks", *arguments)
    return max([run(ready(extra) if extra else sys.executable, *step, *arguments)[0] for extra, *step in STEPS[target]])


if __name__ == "__main__":
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    if sys.version_info < (3, 11):
        fail(
            "dev.py needs Python 3.11 or newer, this is %d.%d: run it as `python3.11 dev.py`, say"
            % sys.version_info[:2]
        )
    sys.exit(main(*sys.argv[1:]))
