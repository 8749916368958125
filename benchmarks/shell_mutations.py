"""
Random mutations of the commands of the tests, read by the guard's reader: it must not crash, nor take long.

    python -m benchmarks.shell_mutations SECONDS [SEED]
"""

import random
import sys
import time

from guardrails.core.commands import UnreadableError, walk

from .shell_parsers import fixture


PIECES = [
    *("$(", "`", ")", '"', "'", "${", "}", "|", "&&", ";", "\n", "<<EOF\n", "EOF\n", "rm", "-rf", "/", "$X", "f(){ "),
    *("if ", "then ", "fi", "for i in ", "do ", "done", "\\", "{a,b}", "<(", ">", "eval ", "sh -c ", "xargs ", "a=("),
    *("find . -exec ", "((", "[[ ", "case x in ", "${!x}", "${a[@]}", "python -c ", "set -- ", "alias x="),
]


def mutated(command: str, commands: list[str], chance: random.Random) -> str:
    """
    *command* with one to six changes: something cut, put in, repeated, or another command after it.
    """
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(command) + 1)
        end = min(len(command), start + chance.randint(0, 8))
        match chance.choices(("cut", "insert", "append", "repeat"), (3, 4, 2, 1))[0]:
            case "cut":
                command = command[:start] + command[end:]
            case "insert":
                command = command[:start] + chance.choice(PIECES) + command[start:]
            case "append":
                command += chance.choice([";", "|", "\n", "&&", " "]) + chance.choice(commands)
            case _:
                command = command[:start] + command[start:end] * chance.randint(2, 5) + command[end:]
    return command[:3_000]


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance = random.Random(seed)
    commands = fixture("denied") + fixture("allowed")
    until = time.monotonic() + seconds
    count, crashes, slowest = 0, 0, (0.0, "")
    while time.monotonic() < until:
        command = mutated(chance.choice(commands), commands, chance)
        start = time.process_time()
        try:
            walk(command)
        except UnreadableError as error:
            if error.__cause__ is not None:
                crashes += 1
                print(repr(error.__cause__), repr(command)[:300])
        slowest = max(slowest, (time.process_time() - start, command))
        count += 1
    print(f"{count:,} mutations, {crashes} crashes, the slowest {slowest[0] * 1e3:.1f} ms: {slowest[1]!r:.200}")


if __name__ == "__main__":
    main()
