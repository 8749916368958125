"""
The share of planted faults in the core that the tests find: `python -m tests.mutants [--sample 200] [--seed 1] [--jobs 2]`.

Each mutant changes one place of one function: a comparison, `and` or `or`, a `not`, a number, the sign of a sum, or what is returned. The tests
that run its line are run until one fails. The sources are changed in copies of the
checkout; survivors are printed.
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
from typing import Any, Final

import coverage


ROOT: Final = Path(__file__).parents[1]
QUICK: Final = ["-q", "-m", "not system", "-p", "no:cacheprovider"]
LEFT_OUT: Final = shutil.ignore_patterns(".git", ".venv*", ".hosts", ".site")
PAIRS: Final = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, And Or"
SWAPS: Final = {one: other for pair in PAIRS.split(", ") for one, other in (pair.split(), pair.split()[::-1])}


def spoiled(node: Any) -> bool:
    """
    Change a *node* of a tree. Returns whether there is something in it to change.
    """
    match node:
        case ast.Compare(ops=[op]) if type(op).__name__ in SWAPS:
            node.ops = [getattr(ast, SWAPS[type(op).__name__])()]
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op).__name__ in SWAPS:
            node.op = getattr(ast, SWAPS[type(op).__name__])()
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            node.value = value + 1
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            node.value = ast.Constant(None)
        case _:
            return False
    return True


def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """
    Returns what stands in the functions of a file.
    """
    return [node for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) for node in ast.walk(one)]


def mutant_of(path: str, number: int) -> tuple[int, str, str]:
    """
    Returns the line of a mutant, how it differs, and the whole text.
    """
    tree = ast.parse((ROOT / path).read_text())
    node: Any = nodes_of(tree)[number]
    before = ast.unparse(node)
    spoiled(node)
    return node.lineno, f"{before} -> {ast.unparse(node)}", ast.unparse(tree)


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
    chosen, copies = options.parse_args(), Queue[Path]()
    paths = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "guardrails/core").rglob("*.py"))
    nodes = [(path, *each) for path in paths for each in enumerate(nodes_of(ast.parse((ROOT / path).read_text())))]
    places = [(path, number) for path, number, node in nodes if spoiled(node)]
    sample = random.Random(chosen.seed).sample(places, chosen.sample)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(chosen.jobs) as pool:
        data = tests_by_line(Path(folder))
        for n in range(chosen.jobs):
            copies.put(Path(shutil.copytree(ROOT, Path(folder) / str(n), symlinks=True, ignore=LEFT_OUT)))

        def is_found(place: tuple[str, int]) -> bool:
            line, change, text = mutant_of(*place)
            contexts = data.contexts_by_lineno(str(ROOT / place[0])).get(line, [])
            tests, copy = sorted({context.partition("|")[0] for context in contexts if context}), copies.get()
            (copy / place[0]).write_text(text)
            command = ["timeout", "240", sys.executable, "-m", "pytest", *QUICK, "-x", *tests]
            found = bool(tests) and subprocess.run(command, cwd=copy, capture_output=True, check=False).returncode != 0
            shutil.copy2(ROOT / place[0], copy / place[0])
            copies.put(copy)
            if not found:
                print(f"{place[0]}:{line}: {change}", flush=True)
            return found

        found = [*pool.map(is_found, sample)]
        print(f"{sum(found)} of {len(found)} found ({sum(found) / len(found):.0%})")


if __name__ == "__main__":
    main()
