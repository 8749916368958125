"""
The direction of imports: a module knows only what stands above it, and the core does no I/O.
"""

import ast

from collections.abc import Iterator
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1] / "guardrails"
LAYERS: list[set[str]] = [
    {"types", "errors", "units"},
    {"collect", "session_id", "usage", "tagged", "arguments", "outcome", "commands", "declared", "path_text"},
    {"signature", "room", "leading_json", "jsonable", "plain_json", "truncation", "merged", "retries", "paging"},
    {"tool", "tool_call", "session_time", "failing", "worked", "state", "envelope", "envelope_text"},
    {"packing", "packing_trail", "guards", "amounts", "repetition", "repeats"},
    {"far"},
    {"chain", "turns", "loop"},
    {"exhaustion", "refusals", "digest", "found", "scope_state", "family"},
    {"decide", "transitions"},
    {"complete"},
    {"record", "scopes"},
    {"life"},
    {"replay"},
    # Above: pure. Below: clocks, locks, threads, files.
    {
        "logs",
        "call_id",
        "results",
        "stores",
        "sinks",
        "running",
        "places",
        "policy_check",
        "policy_scopes",
        "policy_file",
        "registry",
        "feature_file",
        "model_files",
    },
    {"readers", "prices"},
    {"policy"},
    {"recorder"},
    {"ledger"},
    {"calls"},
    {"session"},
    {"mcp", "wrapping", "testing", "integrations", "judge", "quality", "policy_cases", "learning", "builtin"},
    {"demo", "conversations", "agent"},
    {"cli"},
    {"__main__"},
]
PURE = LAYERS[:12]
IMPURE = {"time", "random", "os", "threading", "asyncio", "socket", "yaml", "multiprocessing", "subprocess"}
FRONT_DOORS = {
    # What a person meets first makes the things below it, inside the function that needs them.
    ("policy", "session"),
    ("session", "wrapping"),
    ("collect", "logs"),
}
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def unit(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """
    The units of the package, and the other modules, that a file imports at run time.
    """
    here = ("guardrails", *path.relative_to(ROOT).with_suffix("").parts)
    skipped: set[ast.AST] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if node in skipped:
            skipped.update(ast.iter_child_nodes(node))
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            skipped.update(node.body)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else ()
            full = [*base, *((node.module or "").split(".") if node.module else [])]
            yield from (".".join([*full, alias.name]) for alias in node.names)


def test_every_module_has_its_place() -> None:
    assert {unit(path) for path in modules()} == set(RANK)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_stands_above_it(path: Path) -> None:
    mine = unit(path)
    for name in imports(path):
        if name.startswith("guardrails."):
            other = name.split(".")[1]
            if other in RANK and other != mine and (mine, other) not in FRONT_DOORS:
                assert RANK[other] <= RANK[mine], f"{mine} must not import {other}"


@pytest.mark.parametrize(
    "path", [path for path in modules() if any(unit(path) in names for names in PURE)], ids=lambda path: path.stem
)
def test_the_core_does_no_io(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & IMPURE


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_a_reader_keeps_in_mind(path: Path) -> None:
    # All that changes the state stays in one file; see its first rule.
    longest = 430 if path.name == "state.py" else 300
    assert len(path.read_text().splitlines()) <= longest
