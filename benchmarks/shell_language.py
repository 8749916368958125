"""
How many commands an allow list can express: those in the small language, of the honest commands of the tests and, where they
are, of recorded ones; how many of them only read, by the rules for their programs; and what keeps the others out.

    python -m benchmarks.shell_language [FOLDER]
"""

import re
import sys

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import yaml

from guardrails.core.commands import UnreadableError
from guardrails.core.commands.language import Judged, NotInLanguageError, judged, read
from guardrails.core.commands.programs import NAMES, program_of
from guardrails.core.guards.access.shell import Shell
from guardrails.core.guards.base import Facts
from guardrails.core.state.state import SessionState
from guardrails.core.tools.tool import Tool
from guardrails.core.values.types import ToolCall

from .shell_parsers import RECORDED, ROOT, fixture
from .shell_plain import recorded


Given = str | list[str]
TOOL = Tool(name="bash", commands=("command",), by_argv=True)
READING = Shell(safe=NAMES)
ANY = re.compile(r"\0.*", re.DOTALL)


def told(command: Given, guard: Shell) -> str | None:
    """
    Why *guard* refuses *command*. Returns None if it lets it pass.
    """
    call = ToolCall(TOOL.name, {"command": command}, "1", None, None)
    verdict = guard.check(call, SessionState(), Facts(0, TOOL))
    return None if verdict is None else getattr(verdict, "message", str(verdict))


def expressed(command: Given) -> "Judged | str | None":
    """
    What *command* would run, None for a list of words; or which kind of thing keeps it out of the language.
    """
    if isinstance(command, list):
        return None
    try:
        return judged(read(command))
    except NotInLanguageError as error:
        return error.kind
    except UnreadableError as error:
        return ANY.sub("", re.sub(r"`[^`]*`", "…", str(error)))


def unsafe(command: Given, found: "Judged | None") -> str:
    """
    What of an expressed *command* no rule for reading speaks of, in short.
    """
    if found is None:
        return f"{command[0]} …"
    if found.writes:
        return "writes a file"
    for run in found.runs:
        for each in run.commands:
            if program_of(each.words) is None:
                return f"{each.words[0]} …"
    message = told(command, READING) or ""
    named = re.search(
        r"(`[^`]{1,30}` (?:of `[^`]{1,30}` )?(?:is|takes|may|starts|changes|writes|never|reads)[^:;.`]{0,50})", message
    )
    return named[1] if named else message[:80]


def ruled(found: "Judged | None") -> Shell:
    """
    A guard that allows the programs of *found* with any words.
    """
    programs = {each.words[0] for run in ([] if found is None else found.runs) for each in run.commands}
    return Shell(allow=tuple(f"{program} *" for program in sorted(programs) if "\0" not in program) or ("* *",))


def line(name: str, commands: Iterable[Given]) -> str:
    """
    What is said of the *commands* of a source.
    """
    total, plain, safe, runs = 0, 0, 0, 0
    kinds, others = Counter[str](), Counter[str]()
    for command in commands:
        total += 1
        found = expressed(command)
        if isinstance(found, str):
            kinds[found] += 1
            continue
        plain += 1
        runs += told(command, ruled(found)) is None
        if told(command, READING) is None:
            safe += 1
        else:
            others[unsafe(command, found)] += 1
    first = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(5))
    second = ", ".join(f"{kind} {count:,}" for kind, count in others.most_common(8))
    return (
        f"{name:28} {total:6,} commands, {plain:6,} in the language ({plain / total:4.0%}), "
        f"{runs:6,} run under rules for their programs ({runs / total:4.0%}), {safe:6,} safe ({safe / total:4.0%})\n"
        f"    not in the language: {first}\n"
        f"    not safe: {second}"
    )


def main() -> None:
    print(line("honest, tests/core/commands", fixture("allowed")))
    listed = yaml.safe_load((ROOT / "tests/core/commands/honest.yaml").read_text())
    print(line("honest, for an allow list", [command for group in listed.values() for command in group]))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    sources: dict[str, list[Given]] = {}
    for source, command in recorded(folder):
        sources.setdefault(source, []).append(command)
    for source, commands in sources.items():
        print(line(source, commands))
    if not sources:
        print(f"skipped: no recorded commands in {folder}")


if __name__ == "__main__":
    main()
