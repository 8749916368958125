"""
The shell guard on commands: how many attacks of the tests it denies, and what of recorded commands it refuses, asks about
and could allow.

    python -m benchmarks.shell [FOLDER]
"""

import gzip
import json
import sys
import time

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from guardrails.core.commands import read
from guardrails.core.guards.access.shell import Shell
from guardrails.core.guards.base import Facts
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import Denial, ToolCall


ROOT = Path(__file__).parents[1]
RECORDED = ROOT.parent / "shared" / "data"
TOOL = Tool(name="bash", commands=("command",))
Text = str | list[str]


def rules(policy: str, setting: str) -> tuple[str, ...]:
    return tuple(yaml.safe_load((ROOT / f"policies/{policy}.yaml").read_text())["shell"][setting])


GUARD = Shell(deny=rules("shell", "deny"), ask=rules("agent", "ask"))


def listed(name: str) -> Any:
    return yaml.safe_load((ROOT / f"tests/core/commands/{name}.yaml").read_text())


def recorded(folder: Path) -> Iterator[Text]:
    """
    The commands of shell calls in the records of *folder*, each once.
    """
    seen = set[str]()
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                given = json.loads(line).get("arguments")
                command = (given.get("command") or given.get("cmd")) if isinstance(given, dict) else None
                if isinstance(command, (str, list)) and command and str(command) not in seen:
                    seen.add(str(command))
                    yield command


def judged(command: Text) -> Denial | None:
    call = ToolCall(TOOL.name, {"command": command}, "1", b"1", None)
    said = GUARD.check(call, SessionState(), Facts(0, TOOL))
    return said if isinstance(said, Denial) else None


def told(name: str, commands: Iterable[Text], *, shown: bool = False) -> None:
    """
    Print what is decided of *commands*, and with *shown* each that is refused or asked about.
    """
    given = list(commands)
    start = time.process_time()
    said = [judged(command) for command in given]
    us = (time.process_time() - start) / max(1, len(given)) * 1e6
    codes = Counter("passes" if one is None else one.code for one in said)
    plain = sum(found.not_plain is None and found.unreadable is None for found in map(_read, given))
    print(
        f"{name:10} {len(given):6,}, {plain / max(1, len(given)):4.0%} plain, {us:4.0f} us: {dict(codes.most_common())}"
    )
    for command, one in zip(given, said, strict=True):
        if shown and one is not None:
            print(f"    {one.code:18} {one.message[:100]!r}  {str(command)[:60]!r}")


def _read(command: Text) -> Any:
    return read(command if isinstance(command, str) else tuple(command))


def main() -> None:
    commands = listed("commands")
    for kind in ("denied", "allowed"):
        told(kind, [command for group in commands[kind].values() for command in group])
    told("honest", [command for group in listed("honest").values() for command in group])
    for kind, group in listed("accidents").items():
        told(kind, group)
    told("recorded", recorded(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED), shown=True)


if __name__ == "__main__":
    main()
