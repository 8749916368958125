#!/usr/bin/env python3
"""
Set up and check this repository: python3 dev.py TARGET [ARGUMENT...]

    demo        show a stuck agent without and with guards
    test        run the tests, as many at once as there are cores
    slow        run those that `test` leaves out, since they take more than a few seconds each
    lint, type  ruff, and the order of the rooms; mypy
    policies    check the shipped policies
    cases       hold them to their cases
    bench       a short run of the benchmarks, or of the files that are named
    oracle      decisions, meaning and text of all that is promised, compared with what is frozen in tests/oracle
    weight      lines of code beside those of an older revision (--help tells what counts as one)
    judged      what the shipped policies do to the recorded calls in ../shared/data (or the folder that is named)
    replaying   how many recorded calls a second are judged, there and of own records that it makes first
    suggested   what the suggestions of `guardrails report` are worth there, on sessions that they never saw
    docs        build the site of the documentation into .site (or the folder that is named), where a broken link, a warning and
                a request to another machine fail; then the tests of the site (sphinx goes into .venv-docs)
    profile     where the time of a guarded call goes, by part and by guard
    hosts       the adapters with their hosts' real packages, an environment each in .hosts (or the hosts that are named);
                --newest: with the newest versions that are allowed, and what these break
    mcp         the MCP proxy before the official conformance suite, published servers and a validating client
                (they go into .venv-mcp, node too)
    clis        the hooks with the real coding CLIs and a scripted model (needs node; npm puts them into .clis); all that are
                free, or those that are named: claude is proprietary and is installed if it is named only
    hard        the tests that have a long form, in it: a million calls with odd arguments, faults, kills, a gigabyte to judge
                (about 25 minutes)
    faults      16 workers in 4 processes on each store, killed, paused, cut off; every history is checked: --minutes M (1;
                30 by hand), --seed S, --check FILE; Redis is skipped where there is no redis-server
    fuzz        the same arguments, coverage-guided by atheris, for ten minutes or as -runs=N says
    shellfuzz   200,000 generated commands, run as they are judged and by bash and dash, in a jail that proves to be one
                (-n, --seed, --json FILE; --help tells more)
    soak        two million mixed calls, a crowd of tasks and threads, a million idle sessions: what grows (--help tells more)
    mutants     change the code in one place after the other, and say which changes no test notices (--help tells more)
    spark       the tests that start a real Spark cluster of this machine (Java 17; pyspark goes into .venv-spark)
    beliefs     fit the shipped retry model again, after a change of its beliefs or of the features
    skill       hold the retry model to its targets on three simulated worlds (about ten minutes)
    records     extract ten million records, and say what it takes (--help for more)
    others      all tests but the slow ones on every other Python from 3.11 to 3.13 that is here, or on those that are named
    tests-all   test, slow, then others
    ci          all of these

It needs Python 3.11 or newer with `venv`, and uses `uv` where that is on the PATH. A target installs what it needs into
.venv, and again only when pyproject.toml or the version has changed.
"""
# ruff: noqa: S603, T201, UP031, UP036 (it runs programs, it talks, and an old Python must be able to read it)

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time

from pathlib import Path


ROOT = Path(__file__).resolve().parent
HERE = "%d.%d" % sys.version_info[:2]
PYTHONS = ("3.11", "3.12", "3.13")
EXTRAS = ("openai", "test", "dev")  # each holds those before it
BENCH = ("--benchmark-enable", "--benchmark-max-time=0.1", "--benchmark-min-rounds=3", "--benchmark-columns=median")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def run(*command, quiet=False):
    """The exit code of a command, and what it printed where it is *quiet*."""
    try:
        done = subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=quiet, text=True, check=False)
    except OSError as error:
        return 1, str(error)
    code = abs(done.returncode)  # negative for a signal, which is no success
    if not quiet:
        return code, ""
    return code, (done.stdout + (done.stderr if done.returncode else "")).strip()


def fail(message):
    """End with exit code 2 and one clear message."""
    print(message, file=sys.stderr)
    sys.exit(2)


def interpreter(version):
    """A Python of *version* that works, or None: from the PATH, else from pyenv, whose shims may be switched off."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for python in [f"python{version}", *sorted(pyenv.glob(f"versions/{version}*/bin/python"))]:
        if run(python, "-c", VERSION, quiet=True) == (0, version):
            return python
    return None


def make(venv, base, uv):
    """A new environment of the interpreter *base* in place of whatever *venv* is."""
    venv.unlink() if venv.is_symlink() or venv.is_file() else shutil.rmtree(venv, ignore_errors=True)
    code, text = run(*([uv, "venv", "--python", base] if uv else [base, "-m", "venv"]), venv, quiet=True)
    if code:
        shutil.rmtree(venv, ignore_errors=True)
        bare = not uv and run(base, "-c", "import venv; from ensurepip import version", quiet=True)[0]
        fail("this Python has no `ensurepip`; on Debian and Ubuntu: apt-get install python3-venv" if bare else text)


def ready(extra, folder=".venv", version=HERE, base=None):
    """The interpreter of the environment *folder*, with *extra* installed as pyproject.toml now has it."""
    venv, uv = ROOT / folder, shutil.which("uv")
    python, stamp = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), venv / "installed.txt"
    told = [file for file in (ROOT / "pyproject.toml", ROOT / "guardrails/core/values/version.py") if file.is_file()]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in told)).hexdigest()
    works = run(python, "-c", VERSION, quiet=True) == (0, version)
    enough = EXTRAS[EXTRAS.index(extra) :] if extra in EXTRAS else (extra,)
    if works and stamp.is_file() and stamp.read_text() in {f"{digest} {e}" for e in enough}:
        return python
    if not works or (not uv and run(python, "-m", "pip", "--version", quiet=True)[0]):
        make(venv, base or getattr(sys, "_base_executable", sys.executable), uv)
    stamp.unlink(missing_ok=True)
    print(f"installing .[{extra}] into {folder}", file=sys.stderr)
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    if run(*install, "--quiet", "--editable", f".[{extra}]")[0]:
        fail(f"the installation failed; {folder} is kept, the next run goes on from there")
    stamp.write_text(f"{digest} {extra}")
    return python


def on(cores, among=1):
    """
    The options by which pytest runs many tests at once, if so many runs share the *cores*; a worker that is done takes over
    tests of the others. Half as many again as there are cores, since many tests wait for a process or a clock.
    """
    workers = -(-(cores + cores // 2) // among)
    return ("-n", workers, "--dist", "worksteal") if workers > 1 else ()


def others(*arguments):
    """All tests but the slow ones on every other Python that is here, or is named, at once; the worst exit code."""
    worst, found, running = 0, [], []
    named = [argument for argument in arguments if argument in PYTHONS]
    arguments = [argument for argument in arguments if argument not in PYTHONS]
    for version in named or PYTHONS:
        base = interpreter(version) if version != HERE else None
        if base:
            found.append((version, ready("test", f".venv-{version}", version, base)))
        elif version != HERE:
            print(f"--- no Python {version} here", flush=True)
        elif named:
            print(f"--- Python {version} is that of `python3 dev.py test`", flush=True)
    try:
        for version, python in found:
            output = tempfile.TemporaryFile()  # noqa: SIM115
            command = (python, "-m", "pytest", "-q", *on(CORES, len(found)), "-m", "not slow", *arguments)
            process = subprocess.Popen([str(c) for c in command], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
            running.append((version, process, output))
        for version, process, output in running:
            worst = max(worst, abs(process.wait()))
            output.seek(0)
            print(f"--- tests on Python {version}\n{output.read().decode(errors='replace')}", flush=True)
    finally:
        for _, process, output in running:
            process.kill()
            output.close()
    return worst


def spark(*arguments):
    """The tests of extraction on a cluster of this machine, in an environment of its own; the exit code."""
    if not shutil.which("java"):
        fail("Spark needs Java 17 or newer on the PATH")
    python = ready("test,spark", ".venv-spark")
    tests = (
        "tests/offline/learning/rows/test_spark.py",
        "tests/cli/test_train.py::test_spark_counts_for_the_command_too",
    )
    return run(python, "-m", "pytest", "-q", *tests, *arguments)[0]


def mcp(*arguments):
    """The official suite, published MCP servers and a validating client on both sides of the proxy; the exit code."""
    import tomllib

    versions = tomllib.loads((ROOT / "tests/mcp/versions.toml").read_text())
    venv, uv = ROOT / ".venv-mcp", shutil.which("uv")
    python, stamp = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), venv / "installed.txt"
    wanted = "\n".join(versions["python"] + versions["node"] + versions["npm"])
    os.environ["PATH"] = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))
    if not stamp.is_file() or stamp.read_text() != wanted or run(python, "-c", VERSION, quiet=True)[0]:
        make(venv, getattr(sys, "_base_executable", sys.executable), uv)
        install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
        npm = ("npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", venv / "node")
        # A part that cannot be had is told here, and its tests are skipped with the reason.
        parts = [(*install, "--quiet", *versions[part]) for part in ("python", "node")] + [(*npm, *versions["npm"])]
        missing = [part[-1] for part in parts if run(*part)[0]]
        print("".join(f"--- cannot be installed: {part} and those beside it\n" for part in missing), end="", flush=True)
        stamp.write_text("" if missing else wanted)
    os.environ["GUARDRAILS_MCP_HOME"] = str(venv)
    tests = ("tests/mcp/test_registry_servers.py", "tests/mcp/proxy")
    return run(ready("test"), "-m", "pytest", "-q", *on(min(CORES, 2)), "--durations=5", *tests, *arguments)[0]


def clis(*arguments):
    """The hooks with the real coding CLIs, those that are named or all that are free; the exit code."""
    import json
    import tomllib

    versions = tomllib.loads((ROOT / "tests/clis/versions.toml").read_text())
    chosen = [name for name in versions if name in arguments] or [n for n in versions if not versions[n]["optional"]]
    packages = ROOT / ".clis/node_modules"
    lacking = []
    for name in chosen:
        package, version = versions[name]["package"], versions[name]["version"]
        told = packages / package / "package.json"
        if not told.is_file() or json.loads(told.read_text())["version"] != version:
            lacking.append(f"{package}@{version}")
    npm = ("npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", packages.parent)
    packages.parent.mkdir(exist_ok=True)
    if lacking and run(*npm, *lacking)[0]:
        fail(f"npm cannot install {', '.join(lacking)}; `node` 20 or newer and `npm` are needed")
    os.environ.update(GUARDRAILS_CLIS=str(packages), GUARDRAILS_CLIS_ASKED=" ".join(chosen))
    more = [argument for argument in arguments if argument not in versions]
    return run(ready("test"), "-m", "pytest", "-q", *on(CORES), "tests/clis", *more)[0]


def hosts(*arguments):
    """The tests of each adapter with its host's packages, in an environment of its own; the worst exit code."""
    import tomllib

    versions = tomllib.loads((ROOT / "tests/hosts/versions.toml").read_text())
    tools = versions.pop("tests")["packages"]
    newest = "--newest" in arguments
    asked = [argument.replace("-", "_") for argument in arguments if argument != "--newest"]
    unknown = [name for name in asked if name not in versions]
    if unknown:
        fail(f"there is no host `{unknown[0]}`; there are {', '.join(versions)}")
    chosen = asked or [name for name in versions if (ROOT / f"tests/hosts/test_{name}.py").is_file()]
    worst, told = 0, []
    for name in chosen:
        extra, begun = versions[name]["extra"], time.monotonic()
        packages = versions[name]["packages"]
        results = [tested(name, host(name, [*tools, *packages], extra))]
        if newest:
            free = [package.split("==")[0] for package in packages]
            results.append(tested(name, host(f"{name}-newest", [*tools, *free], extra, upgrade=True)))
            broken = sorted(results[1][2] - results[0][2])
            told += [f"{name}: the newest versions break {test}" for test in broken]
        worst = max(worst, *(code for code, _, _ in results))
        line = f"{name:17}{'; newest: '.join(said for _, said, _ in results)} ({time.monotonic() - begun:.0f} s)"
        print(f"--- {line}", flush=True)
        told.append(line)
    print("\n".join(("=== hosts", *told)), flush=True)
    return worst


def host(folder, packages, extra, *, upgrade=False):
    """The interpreter of a host's environment, with *packages* and this package with its *extra*."""
    venv, uv = ROOT / ".hosts" / folder, shutil.which("uv")
    python, stamp = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"), venv / "installed.txt"
    wanted = "\n".join((hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest(), *packages))
    if (
        not upgrade
        and stamp.is_file()
        and stamp.read_text() == wanted
        and not run(python, "-c", VERSION, quiet=True)[0]
    ):
        return python
    print(f"installing {extra} into .hosts/{folder}", file=sys.stderr)
    venv.parent.mkdir(exist_ok=True)
    if run(python, "-c", VERSION, quiet=True)[0]:
        make(venv, getattr(sys, "_base_executable", sys.executable), uv)
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    more = ["--upgrade"] if upgrade else []
    if run(*install, "--quiet", *more, *packages, "--editable", f".[{extra}]")[0]:
        fail(f"{extra} cannot be installed; see above")
    stamp.write_text(wanted)
    return python


def tested(name, python):
    """Of the tests of a host: exit code, summary, and the names of those that failed."""
    folder = ROOT / "tests/hosts"
    files = [folder / f"test_{name}.py", *sorted(folder.glob(f"test_{name}_*.py"))]
    if (folder / "test_blast_radius.py").is_file():
        files.append(f"{folder}/test_blast_radius.py::test_a_host_that_is_installed_here_holds_what_it_owes[{name}]")
    options = "-ra --strict-markers --strict-config --import-mode=importlib -p no:cacheprovider"
    command = (python, "-m", "pytest", "-q", "--timeout=120", "-o", f"addopts={options}", *files)
    code, text = run(*command, quiet=True)
    lines = text.splitlines()
    if code:
        print(text, flush=True)
    failed = {line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR "))}
    return code, lines[-1].strip("= ") if lines else "nothing ran", failed


def docs(*arguments):
    """The site, in an environment of its own, and the tests of what was built; the exit code."""
    folder = Path(arguments[0]).resolve() if arguments else ROOT / ".site"
    code = run(ready("docs", ".venv-docs"), "-m", "docs.site", folder)[0]
    if code:
        return code
    os.environ["GUARDRAILS_SITE"] = str(folder)
    return run(ready("test"), "-m", "pytest", "-q", "tests/docs/test_site.py")[0]


def hard(*arguments):
    """The tests that have a long form, in it, and what they measured; the exit code."""
    os.environ["GUARDRAILS_HARD"] = "long"
    named = any(not argument.startswith("-") for argument in arguments)
    holding = [] if named else [f for f in sorted(ROOT.glob("tests/**/test_*.py")) if b"long: bool" in f.read_bytes()]
    paths = [file.relative_to(ROOT) for file in holding]
    return run(ready("test"), "-m", "pytest", "-q", "-s", *paths, *arguments)[0]


def fuzz(*arguments):
    """Fuzz with atheris, which does not install everywhere; the exit code."""
    python, uv = ready("test"), shutil.which("uv")
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    if run(*install, "--quiet", "--editable", ".[fuzz]")[0]:
        fail("atheris does not install here; `python3 dev.py hard` tries a million arguments without it")
    return run(python, "-m", "tests.hard.fuzz", *(arguments or ("-max_total_time=600",)))[0]


def slow(*arguments):
    """The tests that take seconds each, all or those that are named; the exit code."""
    named = any(not argument.startswith("-") for argument in arguments)
    # To collect the other tests, in each process, takes longer than most of these.
    holding = [] if named else [f for f in sorted(ROOT.glob("tests/**/test_*.py")) if b"mark.slow" in f.read_bytes()]
    paths = [file.relative_to(ROOT) for file in holding]
    return run(ready("test"), "-m", "pytest", "-q", *on(CORES), "-m", "slow", *paths, *arguments)[0]


def bench(*arguments):
    """The benchmarks, or the files named in *arguments*; the exit code."""
    named = any(argument.endswith(".py") or "::" in argument for argument in arguments)
    return run(ready("test"), "-m", "pytest", "-q", *BENCH, *(() if named else ("benchmarks",)), *arguments)[0]


def main(target="help", *arguments):
    """Run one target; its exit code."""
    shipped = sorted(f"policies/{file.name}" for file in ROOT.glob("policies/*.yaml"))
    tests = ("test", "-m", "pytest", "-q")
    steps = {
        "demo": ("openai", "-m", "guardrails", "demo"),
        "test": (*tests, *on(CORES), "-m", "not slow"),
        "lint": ("dev", "-m", "ruff", "check", "."),
        "format": ("dev", "-m", "ruff", "format", "--check", "."),
        "rooms": ("dev", "-c", "from importlinter.cli import lint_imports_command as main; main()"),
        "type": ("dev", "-m", "mypy"),
        "policies": ("openai", "-m", "guardrails", "policy", "check", *shipped),
        "cases": ("openai", "-m", "guardrails", "policy", "test"),
        "weight": ("dev", "weight.py"),
        "oracle": ("test", "-m", "tests.oracle"),
        "judged": ("test", "-m", "benchmarks.judge.shipped_policies"),
        "replaying": ("test", "-m", "benchmarks.judge.speed"),
        "suggested": ("test", "-m", "benchmarks.quality.holdout"),
        "profile": ("test", "-m", "benchmarks.chain_profile"),
        "beliefs": ("test", "-m", "guardrails.offline.learning.cold"),
        "skill": ("test", "-m", "benchmarks.retries.targets"),
        "records": ("test", "-m", "benchmarks.learning.extraction"),
        "faults": ("test", "-m", "tests.faults"),
        "shellfuzz": ("test", "-m", "tests.shellfuzz"),
        "soak": ("test", "-m", "tests.soak"),
        "mutants": ("test", "-m", "tests.mutants"),
    }
    groups = {"lint": ("lint", "format", "rooms"), "tests-all": ("test", "slow", "others")}
    groups["ci"] = ("test", "slow", "lint", "format", "rooms", "type", "policies", "cases", "docs", "bench", "others")
    own = {"bench": bench, "others": others, "spark": spark, "mcp": mcp, "hard": hard, "fuzz": fuzz}
    own |= {"hosts": hosts, "clis": clis, "slow": slow, "docs": docs}
    if target not in {*steps, *groups, *own}:
        print(__doc__.strip())
        if target in {"help", "-h", "--help"}:
            return 0
        print(f"there is no target `{target}`; they are listed above", file=sys.stderr)
        return 2
    worst = 0
    for name in groups.get(target, (target,)):
        if name != "demo":
            print(f"=== {name}", flush=True)
        extra, *command = steps.get(name, ("",))
        worst = max(worst, own[name](*arguments) if name in own else run(ready(extra), *command, *arguments)[0])
    return worst


if __name__ == "__main__":
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    if sys.version_info < (3, 11):
        fail("dev.py needs Python 3.11 or newer, this is %s: run it as `python3.11 dev.py`, say" % HERE)
    sys.exit(main(*sys.argv[1:]))
