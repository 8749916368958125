"""
Lines of code of this tree beside those of an older revision: python3 dev.py weight [REVISION] [--json]

A line of code is a line with a token of Python in it: no blank line, no comment, no docstring. A string that is a
statement of its own is a docstring; every other string counts with each line of it that is not blank, so that templates,
styles and scripts count wherever they stand. In any other file each line counts that is neither blank nor a comment.
Python is counted after `ruff format` by the settings of this tree, on both sides, so a denser layout gains nothing.

The total holds guardrails/ (without models, which are data), policies/*.yaml (without schemas, which are generated),
dev.py, this file and .ci/run. The benchmarks are counted apart.
"""

import argparse
import ast
import collections
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile

from pathlib import Path
from tokenize import COMMENT, DEDENT, ENCODING, ENDMARKER, INDENT, NEWLINE, NL, generate_tokens


ROOT = Path(__file__).resolve().parent
BEFORE = "f0dc1a3"  # the last revision before the second wave
STORED = {BEFORE: {"total": 31867, "benchmarks": 3469}}  # for a clone that does not hold it
PARTS = ("guardrails", "policies", "dev.py", "weight.py", ".ci", "benchmarks")
SPLIT = {"core", "offline", "agent"}  # the rooms that are listed by the rooms in them
NO_CODE = {COMMENT, DEDENT, ENCODING, ENDMARKER, INDENT, NEWLINE, NL}


def lines_of_python(text: str) -> int:
    """The lines of *text* that hold code."""
    rows: set[int] = set()
    for token in generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            rows.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            rows.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return sum(1 for row, line in enumerate(text.splitlines(), 1) if row in rows and line.strip())


def lines_of_text(text: str) -> int:
    """The lines of *text* that are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", "//", "<!--")))


def unit(path: Path) -> str | None:
    """The name that a file is counted under, or None if it is not counted."""
    part, *rest = path.parts
    if part == "guardrails" and path.suffix in {".py", ".html", ".css", ".js", ".sql"}:
        return "/".join(rest[: 2 if rest[0] in SPLIT else 1][: len(rest) - 1]) or "modules of the package"
    if part == "benchmarks" and path.suffix == ".py":
        return "benchmarks"
    if part == "policies":
        return "policies" if path.suffix == ".yaml" and len(rest) == 1 else None
    return "dev.py, weight.py, .ci/run" if path.name in {"dev.py", "weight.py", "run"} else None


def weigh(tree: Path) -> dict[str, int]:
    """The lines of code of each unit of *tree*, whose Python files are formatted in place."""
    style = ("--quiet", "--no-cache", "--config", str(ROOT / "pyproject.toml"))
    subprocess.run([sys.executable, "-m", "ruff", "format", *style, str(tree)], check=True)  # noqa: S603
    units: collections.Counter[str] = collections.Counter()
    for file in sorted(tree.rglob("*")):
        name = unit(file.relative_to(tree)) if file.is_file() else None
        if name is not None:
            count = lines_of_python if file.suffix == ".py" else lines_of_text
            units[name] += count(file.read_text(encoding="utf-8"))
    return dict(units)


def now() -> dict[str, int]:
    """The units of this tree as it stands."""
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(folder, part), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, folder)
        return weigh(Path(folder))


def then(revision: str) -> dict[str, int] | None:
    """The units of *revision*, or None if this clone does not hold it."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", revision]
    try:
        archive = subprocess.run(command, capture_output=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        chosen = [member for member in tar.getmembers() if Path(member.name).parts[:1][0] in PARTS]
        tar.extractall(folder, members=chosen, filter="data")
        return weigh(Path(folder))


def summed(units: dict[str, int]) -> dict[str, int]:
    """The total of *units*, and the benchmarks apart."""
    apart = units.get("benchmarks", 0)
    return {"total": sum(units.values()) - apart, "benchmarks": apart}


def table(revision: str, before: dict[str, int] | None, after: dict[str, int]) -> str:
    """A row for each unit of either tree; a unit that a tree lacks is blank there."""
    rows = [f"{'lines of code after `ruff format`':46}{revision:>9}{'now':>9}"]
    for name in sorted({*after, *(before or {})} - {"benchmarks"}):
        was, held = (before or {}).get(name, 0), after.get(name, 0)
        if was or held:
            rows.append(f"{name:46}{was or '':>9}{held or '':>9}")
    return "\n".join(rows)


def main(*arguments: str) -> int:
    """Print both trees side by side; the exit code."""
    parser = argparse.ArgumentParser(prog="python3 dev.py weight", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("revision", nargs="?", default=BEFORE, help="the older revision; %(default)s if left out")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    asked = parser.parse_args(arguments)
    after, before = now(), then(asked.revision)
    if before is None and asked.revision not in STORED:
        parser.error(f"this clone holds no revision {asked.revision}")
    new, old = summed(after), STORED[asked.revision] if before is None else summed(before)
    change = {name: round(100 * (new[name] / max(1, old[name]) - 1), 1) for name in new}
    if asked.json:
        told = {"revision": asked.revision, "stored": before is None, "before": {**old, "units": before or {}}}
        print(json.dumps({**told, "now": {**new, "units": after}, "change": change}, indent=2))  # noqa: T201
        return 0
    print(table(asked.revision, before, after))  # noqa: T201
    for name, percent in change.items():
        print(f"{name:46}{old[name]:>9}{new[name]:>9}  {percent:+} %")  # noqa: T201
    if before is None:
        print(f"This clone does not hold {asked.revision}: its figures are the stored ones.")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
