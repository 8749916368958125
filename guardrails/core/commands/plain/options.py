"""
The place among the words of a program at which the command that it starts begins, told by the listed options only.

An option that is not listed may take the next word for itself. A word that is known only at run time may be any option.
Behind either nobody can say which word is the program.
"""

from collections.abc import Sequence
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.grammar.syntax import UnreadableError
from guardrails.core.commands.wrappers import PREFIXES, taking


_FLAGS: Final = {
    "sudo": "-A -b -E -H -k -n -P -S --askpass --background --preserve-env --set-home --non-interactive --stdin",
    "doas": "-n",
    "env": "-i -v -0 --ignore-environment --debug --null",
    "setsid": "-c -f -w --ctty --fork --wait",
    "time": "-a -p -q -v --append --portability --quiet --verbose",
    "timeout": "-f -p -v --foreground --preserve-status --verbose",
    "ionice": "-t --ignore",
    "taskset": "-c --cpu-list",
    "command": "-p",
    "exec": "-c -l",
    "strace": "-c -C -f -q -r -t -T -v -y",
    "xargs": "-0 -o -p -r -t -x --exit --interactive --no-run-if-empty --null --open-tty --verbose",
    "parallel": "-k -t --bar --keep-order --progress --verbose --will-cite",
    "ssh": "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
    "watch": "-b -c -d -e -g -t --beep --color --errexit --chgexit --no-title",
    "flock": "-e -F -n -o -s -u -x --close --exclusive --nb --no-fork --nonblock --shared --unlock --verbose",
    "script": "-a -e -f -q --append --flush --quiet --return",
    "su": "-l -m -p -P --login --preserve-environment --pty",
    "xvfb-run": "-a -l --auto-servernum --listen-tcp",
}
"""Options without a value."""
_VALUED: Final = {
    **PREFIXES,
    "xargs": taking(
        "-I -n -L -P -s -d -E -a --arg-file --delimiter --max-args --max-chars --max-procs --process-slot-var"
    ),
    "parallel": taking("-j --jobs --joblog --results --retries --timeout --tmpdir"),
    "ssh": taking("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w", 1),
    "watch": taking("-n -q --interval --equexit"),
    "flock": taking("-w -E --timeout --wait --conflict-exit-code", 1),
    "script": taking("-c --command"),
    "su": taking("-c -g -G --command --group --supp-group"),
    "ld.so": taking("--library-path --preload --argv0 --audit --inhibit-rpath"),
}
"""Options that take a value."""
GNU: Final = _VALUED.keys() | {"find"}
"""Programs that other systems have with a `g` before the name."""


def begin(name: str, rest: Sequence[str]) -> tuple[int, list[tuple[str, str]]]:
    """
    Returns the place in *rest* at which the command that the program *name* starts begins, and the options with a value
    before it.

    Raises UnreadableError behind an option that is not listed.
    """
    options, flags = _VALUED[name], _FLAGS.get(name, "").split()
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(rest) and rest[position].startswith("-") and len(rest[position]) > 1:
        word = rest[position]
        position += 1
        if word == "--":
            break
        if word.startswith("--"):
            option, given, value = word.partition("=")
        else:
            # Letters side by side; the first that is no flag takes what is left of the word, or the next word.
            last = next((n for n, letter in enumerate(word) if n and f"-{letter}" not in flags), len(word) - 1)
            option, given, value = f"-{word[last]}", word[last + 1 :], word[last + 1 :]
        if option in options.valued:
            if not given:
                value = "".join(rest[position : position + 1])
                position += 1
            pairs.append((option, value))
        elif given or option not in flags:
            raise UnreadableError(
                f"what `{name}` starts is not clear behind its option `{word[:40]}`",
                f"leave that option of `{name}` out",
            )
    check_known(name, rest[: position + options.operands])
    return position + options.operands, pairs


def check_known(name: str, words: Sequence[str], advice: str = "") -> None:
    """
    Raise UnreadableError, with *advice* if there is some, if one of *words*, which the program *name* reads itself, is known
    only at run time.
    """
    if any(UNKNOWN in word for word in words):
        raise UnreadableError(
            f"words of `{name}` itself are known only when it runs, and what it starts with them",
            advice or f"write the words of `{name}` out, up to the program that it starts",
        )
