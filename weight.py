#!/usr/bin/env python3
"""
Lines of code by room, each held to its figure in pyproject.toml: python3 dev.py weight

A line of code is a line with a token of Python in it: no blank line, no comment, no docstring. A data file that a call reads
counts with each line. A room is a folder or a file of `[tool.weight]`; the figure of a whole (`guardrails`, `tests`) may only
fall. Exit code 1: a room is too heavy, or the figure of a whole rose.
"""

import ast
import io
import subprocess
import sys
import tomllib

from pathlib import Path
from tokenize import COMMENT, DEDENT, ENCODING, ENDMARKER, INDENT, NEWLINE, NL, generate_tokens


ROOT = Path(__file__).resolve().parent
NO_CODE = {COMMENT, DEDENT, ENCODING, ENDMARKER, INDENT, NEWLINE, NL}
BESIDE_A_CALL = ("core", "policy", "session", "sinks", "stores")


def code_lines(source: str) -> int:
    """The lines of *source* that hold a token of Python; a string that is a statement is a docstring."""
    rows: set[int] = set()
    for token in generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            rows.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            rows.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(rows)


def weigh(room: Path, root: Path = ROOT) -> int:
    """The lines of a file, or of all files of a folder."""
    total = 0
    for file in [room] if room.is_file() else sorted(room.rglob("*")):
        parts = file.relative_to(root).parts
        if any(part.startswith((".", "__pycache__")) for part in parts):
            continue
        if file.suffix == ".py":
            total += code_lines(file.read_text(encoding="utf-8"))
        elif file.suffix in {".json", ".lua", ".sql", ".txt", ".yaml"} and parts[:1] == ("guardrails",):
            total += len(file.read_text(encoding="utf-8").splitlines()) if parts[1] in BESIDE_A_CALL else 0
    return total


def figures(revision: str | None = None) -> dict[str, int]:
    """The figures of this tree, or those of *revision* as far as they can be had."""
    text = (ROOT / "pyproject.toml").read_text()
    if revision:
        command = ["git", "-C", str(ROOT), "show", f"{revision}:pyproject.toml"]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return dict(tomllib.loads(text).get("tool", {}).get("weight", {}))


def main() -> int:
    """Print each room beside its figure; the exit code."""
    now, faults = figures(), []
    for room, most in now.items():
        lines = weigh(ROOT / room)
        print(f"{room:32}{lines:>9,} of {most:>7,}{'' if lines <= most else '  too heavy'}")
        faults += [room] * (lines > most)
    for revision in ("HEAD", "HEAD^"):
        for room, most in figures(revision).items():
            # What moves from one room into another makes neither of them a fault.
            if "/" not in room and now.get(room, 0) > most:
                faults.append(room)
                print(f"the figure of {room} rose from {most:,}")
    for folder in sorted(path for path in (ROOT / "guardrails").iterdir() if (path / "__init__.py").is_file()):
        if f"guardrails/{folder.name}" not in now:
            faults.append(folder.name)
            print(f"guardrails/{folder.name} has no figure")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
