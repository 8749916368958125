"""
How many commands an allow list could speak of at all: those in the plain form, of the honest commands of the tests and,
where they are, of recorded ones; and what keeps the others out of it.

    python -m benchmarks.shell_plain [FOLDER]
"""

import gzip
import json
import sys

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from guardrails.core.commands import NotPlainError, UnreadableError, plainly

from .shell_parsers import RECORDED, ROOT, fixture


def recorded(folder: Path) -> Iterator[tuple[str, str | list[str]]]:
    """
    The source and the command of each shell call in the records of *folder*, each command of a source once.
    """
    for path in sorted(folder.glob("*.jsonl.gz")):
        source, seen = path.name.partition(".")[0], set[str]()
        with gzip.open(path, "rt") as lines:
            for line in lines:
                given = json.loads(line).get("arguments")
                command = (given.get("command") or given.get("cmd")) if isinstance(given, dict) else None
                if not isinstance(command, str) and not (isinstance(command, list) and command):
                    continue
                # Longer ones were cut when they were recorded.
                if len(str(command)) < 4_900 and str(command) not in seen:
                    seen.add(str(command))
                    yield source, command


def refusal(command: str | list[str]) -> str | None:
    """
    What keeps *command* out of the plain form; None if it is in it.
    """
    try:
        plainly(command)
    except NotPlainError as error:
        return error.kind
    except UnreadableError:
        return "unreadable"
    return None


def told(name: str, commands: Iterable[str | list[str]]) -> str:
    """
    One line about the *commands* of a source.
    """
    refusals = [refusal(command) for command in commands]
    plain, kinds = refusals.count(None), Counter(kind for kind in refusals if kind is not None)
    most = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(4))
    return f"{name:28} {len(refusals):6,} commands, {plain:6,} plain ({plain / len(refusals):4.0%}); else {most}"


def main() -> None:
    print(told("honest, tests/core/commands", fixture("allowed")))
    listed = yaml.safe_load((ROOT / "tests/core/commands/honest.yaml").read_text())
    print(told("honest, for an allow list", [command for group in listed.values() for command in group]))
    sources: dict[str, list[str | list[str]]] = {}
    for source, command in recorded(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED):
        sources.setdefault(source, []).append(command)
    for source, commands in sources.items():
        print(told(source, commands))


if __name__ == "__main__":
    main()
