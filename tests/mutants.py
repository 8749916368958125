"""
The share of planted faults in the core that the tests find: `python -m tests.mutants [--sample 200] [--seed 1] [--jobs 2]`.

Each mutant changes one place of one function: a comparison, `and` or `or`, a `not`, a number, the sign of a sum, or what is returned. The tests
that run its line are run until one fails. The sources are changed in copies of the checkout; survivors are printed.
"""

import argparse
import ast
import random
import shutil
import subprocess
import sys
import tempfile

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Final, NamedTuple

import coverage


ROOT: Final = Path(__file__).parents[1]
QUICK: Final = ["-q", "-m", "not system", "-p", "no:cacheprovider", "-p", "no:randomly"]
SWAPS: Final = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Add: "-",
    ast.Sub: "+",
    ast.And: "or",
    ast.Or: "and",
}
LIMIT_S: Final = 240


class Mutant(NamedTuple):
    """
    One place of a file, and its text instead.
    """

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str


def mutants_of(path: str) -> list[Mutant]:
    """
    Returns all mutants of a file; places are offsets in its bytes.
    """
    source = (ROOT / path).read_bytes()
    starts = [0, *(at + 1 for at, byte in enumerate(source) if byte == 10)]
    made: list[Mutant] = []

    def offset(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    def put(node: ast.AST, start: int, end: int, new: str) -> None:
        made.append(Mutant(path, getattr(node, "lineno", 0), start, end, source[start:end].decode(), new))

    for node in (
        inner
        for outer in ast.walk(ast.parse(source))
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
    ):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) | ast.BinOp(left=left, op=op, right=right):
                ends = offset(left.end_lineno, left.end_col_offset), offset(right.lineno, right.col_offset)
                word = source[slice(*ends)].decode().strip()
                if type(op) in SWAPS and word.replace(" ", "").isalpha() | (len(word) < 3):
                    put(node, *ends, f" {SWAPS[type(op)]} ")
            case ast.BoolOp(op=op, values=[one, other, *_]):
                ends = offset(one.end_lineno, one.end_col_offset), offset(other.lineno, other.col_offset)
                if source[slice(*ends)].decode().strip() in ("and", "or"):
                    put(node, *ends, f" {SWAPS[type(op)]} ")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                put(node, offset(node.lineno, node.col_offset), offset(operand.lineno, operand.col_offset), "")
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                put(
                    node,
                    offset(node.lineno, node.col_offset),
                    offset(node.end_lineno, node.end_col_offset),
                    str(value + 1),
                )
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                put(
                    node, offset(value.lineno, value.col_offset), offset(value.end_lineno, value.end_col_offset), "None"
                )
            case _:
                pass
    return sorted(set(made))


def tests_by_line(folder: Path) -> "coverage.CoverageData":
    """
    Returns which tests run which lines of the core, by one run of the suite. It is kept in *folder*.
    """
    file, settings = folder / "data", folder / "settings"
    settings.write_text(f"[run]\nsource = {ROOT}/guardrails/core\ndata_file = {file}\ncore = ctrace\n")
    command = [sys.executable, "-m", "pytest", *QUICK, "-n", "2", "--cov", f"--cov-config={settings}"]
    subprocess.run([*command, "--cov-context=test", "--cov-report="], cwd=ROOT, check=False)
    data = coverage.CoverageData(str(file))
    data.read()
    return data


def main() -> None:
    """
    Print each survivor, and the share of the sample that was found.
    """
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("sample", 200), ("seed", 1), ("jobs", 2)):
        options.add_argument(f"--{name}", type=int, default=default)
    chosen = options.parse_args()
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "guardrails/core").rglob("*.py"))
    sample = random.Random(chosen.seed).sample([one for path in paths for one in mutants_of(path)], chosen.sample)
    copies = Queue[Path]()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        data = tests_by_line(Path(folder))
        for n in range(chosen.jobs):
            copies.put(
                Path(
                    shutil.copytree(
                        ROOT,
                        Path(folder) / str(n),
                        symlinks=True,
                        ignore=shutil.ignore_patterns(".git", ".venv", ".hosts", ".site"),
                    )
                )
            )

        def found(one: Mutant) -> bool:
            contexts = data.contexts_by_lineno(str(ROOT / one.path)).get(one.line, [])
            tests = sorted({context.partition("|")[0] for context in contexts if context})
            copy = copies.get()
            file = copy / one.path
            source = file.read_bytes()
            file.write_bytes(source[: one.start] + one.new.encode() + source[one.end :])
            try:
                command = [sys.executable, "-m", "pytest", *QUICK, "-x", *tests]
                ended = subprocess.run(command, cwd=copy, timeout=LIMIT_S, capture_output=True, check=False)
                return bool(tests) and ended.returncode != 0
            except subprocess.TimeoutExpired:
                return True
            finally:
                file.write_bytes(source)
                copies.put(copy)

        results = list(zip(sample, pool.map(found, sample), strict=True))
    for one, dead in results:
        if not dead:
            print(f"{one.path}:{one.line}: {one.old!r} -> {one.new!r}")
    count = sum(dead for _, dead in results)
    print(f"{count} of {len(results)} found ({count / len(results):.0%})")


if __name__ == "__main__":
    main()
