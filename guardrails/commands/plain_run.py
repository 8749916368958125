"""
What a command in the plain form would run: its own commands, and those that its programs start.

Of what is piped, found or read nothing is known here. An option that nobody listed may take the next word for itself, so
that a program that starts others is read with the listed ones only.
"""

import re

from collections.abc import Iterator, Sequence
from typing import Final

from .found import Command, Found
from .plain_form import pipelines
from .run import MAX_COMMANDS, MAX_NESTED
from .scope import UNKNOWN
from .syntax import UnreadableError
from .wrappers import PREFIXES, SHELLS, Inner, Options, inner


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
    "strace": "-c -C -f -ff -q -qq -r -t -tt -ttt -T -v -y -yy",
    "xargs": "-0 -o -p -r -t -x --exit --interactive --no-run-if-empty --null --open-tty --verbose",
}
"""Options without a value; those with one are in `PREFIXES`."""
_XARGS: Final = Options(
    frozenset({"-I", "-n", "-L", "-P", "-s", "-d", "-E", "-a", "--arg-file", "--delimiter"})
    | {"--max-args", "--max-chars", "--max-procs", "--process-slot-var"}
)
_VERSION: Final = re.compile(r"[-\d.]+$")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_EVALUATE: Final = frozenset(
    {"test", "let", "read", "unset", "export", "readonly", "declare", "typeset", "local", "mapfile", "readarray"}
    | {"wait", "getopts", "compgen", "complete"}
)
"""Commands of bash that take a word for the name of a variable and work out what stands in its brackets."""
_EVALUATED: Final = frozenset("$`[")


def plainly(command: str | Sequence[str]) -> Found:
    """
    All that *command* may run: text in the plain form, or the words of one command that no shell splits again.

    Raises NotPlainError for other text, UnreadableError where nobody can say what it runs.
    """
    found = Found()
    if any(UNKNOWN in part for part in ([command] if isinstance(command, str) else command)):
        raise UnreadableError("it holds a NUL")
    try:
        if isinstance(command, str):
            _script(found, command, None, 0)
        else:
            _run(found, command, None, 0, by_shell=False)
    except UnreadableError:
        raise
    except Exception as error:
        # Whatever fails in reading it, nobody has read it.
        raise UnreadableError(f"reading it failed ({type(error).__name__})") from error
    return found


def _script(found: Found, text: str, stdin: str | None, depth: int) -> None:
    if text == UNKNOWN:
        _doubt(found, "what it runs is known only when it runs")
        return
    if UNKNOWN in text:
        raise UnreadableError("it runs a script that is put together only when it runs")
    for pipeline in pipelines(text):
        for number, words in enumerate(pipeline):
            _run(found, words, UNKNOWN if number else stdin, depth, by_shell=True)


def _run(found: Found, words: Sequence[str], stdin: str | None, depth: int, *, by_shell: bool) -> None:
    if not words:
        return
    if depth > MAX_NESTED:
        raise UnreadableError(f"it wraps commands in commands, more than {MAX_NESTED} deep")
    if len(found.commands) >= MAX_COMMANDS:
        raise UnreadableError(f"it may run more than {MAX_COMMANDS:,} commands")
    command = Command(tuple(words))
    found.commands.append(command)
    if UNKNOWN in words[0]:
        _doubt(found, "which program it runs is known only when it runs")
    if by_shell and _evaluates(words) and not all(_EVALUATED.isdisjoint(word) for word in words):
        raise UnreadableError(f"`{words[0]}` would work out what stands behind a `$`, a backtick or a `[` in its words")
    name = _VERSION.sub("", command.name)
    for each in _started(name if name in SHELLS else command.name, words[1:], words, stdin):
        if each.script is not None:
            # A script that is read from there leaves nothing to its commands.
            _script(found, each.script, None if each.script is stdin else stdin, depth + 1)
        else:
            _run(found, each.words, stdin, depth + 1, by_shell=by_shell)


def _doubt(found: Found, reason: str) -> None:
    if reason not in found.doubts:
        found.doubts.append(reason)


def _evaluates(words: Sequence[str]) -> bool:
    return words[0] in _EVALUATE or (words[0] == "printf" and words[1:2] != [] and words[1].startswith("-v"))


def _started(name: str, rest: Sequence[str], words: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    """
    The commands that the program *name* starts when called with *words*, of which *rest* are all but the first.
    """
    if name in ("find", "gfind"):
        yield from _find(rest)
    elif name in ("xargs", "gxargs"):
        yield from _xargs(rest)
    elif name == "alias":
        yield from (Inner(script=value) for _, sign, value in (word.partition("=") for word in rest) if sign)
    elif name == "command" and rest[:1] and rest[0] in ("-v", "-V"):
        # It tells where a program is, and starts none.
        return
    elif name == "parallel":
        _begin(name, rest, PREFIXES[name])
        yield from inner(name, words, UNKNOWN)
    elif name in PREFIXES:
        started = list(rest[_begin(name, rest, PREFIXES[name])[0] :])
        while name in ("env", "sudo") and started and _ASSIGNMENT.match(started[0]):
            del started[0]
        yield Inner(tuple(started))
    else:
        yield from inner(name, words, stdin)


def _begin(name: str, rest: Sequence[str], options: Options) -> tuple[int, dict[str, str]]:
    """
    Where in *rest* the command that the program *name* starts begins, and the values of the options before it.
    """
    flags = _FLAGS.get(name, "").split()
    values: dict[str, str] = {}
    position = 0
    while position < len(rest) and rest[position].startswith("-") and len(rest[position]) > 1:
        word = rest[position]
        position += 1
        if word == "--":
            break
        option, _, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        if word in options.valued:
            values[word] = "".join(rest[position : position + 1])
            position += 1
        elif option != word and option in options.valued:
            values[option] = value
        elif word not in flags:
            raise UnreadableError(f"what `{name}` starts is not clear behind its option `{word[:40]}`")
    return position + options.operands, values


def _xargs(rest: Sequence[str]) -> Iterator[Inner]:
    begin, values = _begin("xargs", rest, _XARGS)
    place, started = values.get("-I"), rest[begin:]
    if place is not None and not values.keys().isdisjoint(("-n", "-L", "--max-args")):
        raise UnreadableError("what `xargs` starts is not clear with `-I` and a number of words or lines")
    if started:
        yield Inner((*started, UNKNOWN) if place is None else tuple(word.replace(place, UNKNOWN) for word in started))


def _find(rest: Sequence[str]) -> Iterator[Inner]:
    position = 0
    while position < len(rest):
        flag = rest[position]
        position += 1
        if flag not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        begin = position
        while position < len(rest) and rest[position] != ";":
            # A `+` ends it only behind `{}`.
            if rest[position] == "+" and rest[position - 1] == "{}" and flag.startswith("-exec"):
                break
            position += 1
        yield Inner(tuple(word.replace("{}", UNKNOWN) for word in rest[begin:position]))
