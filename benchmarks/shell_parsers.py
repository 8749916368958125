"""
Which parser reads shell commands: bashlex and tree-sitter-bash on the commands of the tests and, where they are, on
recorded ones.

    python -m benchmarks.shell_parsers

bashlex (GPL, so no dependency of this library) must be installed for the comparison.
"""

import gzip
import json
import time

from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from guardrails.core.commands.grammar.syntax import parse
from guardrails.core.guards.access.shell import Shell
from guardrails.core.guards.base import Facts
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ToolCall


ROOT = Path(__file__).parents[1]
RECORDED = ROOT.parent / "shared" / "data"
TOOL = Tool(name="bash", commands=("command",))


def fixture(kind: str) -> list[str]:
    """
    The commands of the tests that are to be *kind*: `denied` or `allowed`.
    """
    groups = yaml.safe_load((ROOT / "tests/core/commands/commands.yaml").read_text())[kind]
    return [command for group in groups.values() for command in group]


def recorded() -> Iterator[str]:
    """
    The shell commands of recorded coding agents, each once.
    """
    seen = set()
    for path in sorted(RECORDED.glob("c[cx]_*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                arguments = json.loads(line).get("arguments")
                command = (arguments.get("command") or arguments.get("cmd")) if isinstance(arguments, dict) else None
                # Longer ones were cut when they were recorded.
                if isinstance(command, str) and len(command) < 4_900 and command not in seen:
                    seen.add(command)
                    yield command


def measured(read: Callable[[str], object], commands: list[str]) -> tuple[int, float]:
    """
    How many of *commands* cannot be read, and microseconds of CPU for one.
    """
    failed = 0
    start = time.process_time()
    for command in commands:
        try:
            read(command)
        except Exception:  # noqa: BLE001  a parser may raise anything
            failed += 1
    return failed, (time.process_time() - start) / max(1, len(commands)) * 1e6


def main() -> None:
    settings = yaml.safe_load((ROOT / "policies/shell.yaml").read_text())["shell"]
    guard = Shell(deny=tuple(settings["deny"]))

    def judge(command: str) -> bool:
        call = ToolCall(TOOL.name, {"command": command}, "1", None, None)
        return guard.check(call, SessionState(), Facts(0, TOOL)) is not None

    sets = {"evil": fixture("denied"), "honest": fixture("allowed"), "recorded": list(recorded())}
    readers: dict[str, Callable[[str], object]] = {"tree-sitter-bash": parse}
    try:
        import bashlex
    except ImportError:
        print("bashlex is not installed")
    else:
        readers["bashlex"] = bashlex.parse
    for name, commands in sets.items():
        for parser, read in readers.items():
            failed, us = measured(read, commands)
            print(f"{name:9} {len(commands):6,} {parser:17} cannot read {failed:5,}  {us:7.0f} us")
        denied = sum(judge(command) for command in commands)
        _, us = measured(judge, commands)
        print(f"{name:9} {len(commands):6,} {'the guard':17} denies      {denied:5,}  {us:7.0f} us")


if __name__ == "__main__":
    main()
