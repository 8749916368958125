"""
The commands that a program starts, as its words in the plain form say it.
"""

import re

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import dropwhile
from typing import Final

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.commands.grammar.syntax import MAX_PARSED_BYTES, UnreadableError
from guardrails.core.commands.wrappers import PREFIXES, SHELLS, Inner, inner
from guardrails.core.values.late_pattern import pattern

from .options import GNU, begin, check_known


_ASSIGNMENT: Final = pattern(r"[A-Za-z_]\w*=")
_OTHER_QUOTES: Final = frozenset({"fish", "csh", "tcsh"})
"""Shells that read quotes in another way than `sh` does."""
_PLACE: Final = pattern(r"\{/?/?\.?\}")
_RUN_TIME: Final = Inner(script=UNKNOWN)


def started(words: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    """
    Returns the commands that the program of *words* starts; *stdin* is as `inner` takes it.

    Raises UnreadableError if nobody can say which they are.
    """
    base, rest = words[0].rpartition("/")[2].lower().removesuffix(".exe"), words[1:]
    # `gtimeout` is what another system calls GNU's `timeout`.
    name = base[1:] if base.startswith("g") and base[1:] in GNU else base
    shell = name.rstrip("-.0123456789")
    if shell in SHELLS:
        _check_shell(shell, rest)
        yield from inner(shell, words, stdin)
    elif name == "command" and rest[:1] and rest[0] in ("-v", "-V"):
        # It tells where a program is, and starts none.
        return
    elif name == "runuser" and not any(word.startswith(("-u", "--user")) for word in rest):
        yield from _su(rest)
    elif name in _SPECIAL:
        yield from _SPECIAL[name](rest)
    elif name == "ssh":
        yield from _joined(name, rest, stdin)
    elif name.startswith("ld-linux") or (name.startswith("ld-") and ".so" in name):
        yield from _prefixed("ld.so", rest, stdin)
    elif name in PREFIXES:
        yield from _prefixed(name, rest, stdin)
    else:
        yield from inner(name, words, stdin)


def _check_shell(name: str, rest: Sequence[str]) -> None:
    """
    Raise UnreadableError if it is not clear which word of *rest* is the text that the shell *name* runs.
    """
    if name in _OTHER_QUOTES:
        if any(word.startswith("-") for word in rest):
            raise UnreadableError(f"`{name}` reads quotes in another way than `sh`", "give the text to `sh -c`")
        return
    named = "[oO]?" if name in ("bash", "rbash") else "o?"
    position = 0
    while position < len(rest) and rest[position].startswith(("-", "+")) and rest[position] not in ("-", "--"):
        word = rest[position]
        position += 1
        found = re.fullmatch(rf"[-+][aefhilnsuvx]*({named})c?|--(?:login|noprofile|norc|posix)", word)
        if found is not None and found[1]:
            found = re.fullmatch(r"[a-z_]+", "".join(rest[position : position + 1]))
            position += 1
        if found is None:
            raise UnreadableError(
                f"what `{name}` runs is not clear behind its option `{word[:40]}`",
                f"leave that option of `{name}` out",
            )


def _prefixed(name: str, rest: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    words = list(rest[begin(name, rest)[0] :])
    if name in ("env", "sudo"):
        words = list(dropwhile(_ASSIGNMENT.match, words))
    if words:
        yield Inner(tuple(words))
    elif stdin is not None:
        # Without a command some of them start a shell, and it reads what is piped.
        yield _RUN_TIME


def _joined(name: str, rest: Sequence[str], stdin: str | None = None) -> Iterator[Inner]:
    words = rest[begin(name, rest)[0] :]
    if words:
        yield Inner(script=" ".join(words))
    elif stdin is not None:
        yield _RUN_TIME


def _flock(rest: Sequence[str]) -> Iterator[Inner]:
    words = rest[begin("flock", rest)[0] :]
    if words[:1] in (["-c"], ["--command"], ("-c",), ("--command",)):
        yield Inner(script=" ".join(words[1:]))
    elif words:
        yield Inner(tuple(words))


def _su(rest: Sequence[str]) -> Iterator[Inner]:
    yield from _anywhere("su", [word for word in rest if word != "-"])


def _anywhere(name: str, rest: Sequence[str]) -> Iterator[Inner]:
    """
    Returns the script that `-c` gives to *name*, which starts a shell and takes one word beside its options, before or
    behind them.
    """
    scripts: list[str] = []
    operands: list[str] = []
    while rest and len(operands) < 2:
        start, pairs = begin(name, rest)
        scripts += [value for option, value in pairs if option in ("-c", "--command")]
        operands += rest[start : start + 1]
        rest = rest[start + 1 :]
    check_known(name, operands)
    if len(operands) > 1:
        raise UnreadableError(
            f"what `{name}` starts is not clear behind `{operands[0][:40]}`", f"give `{name}` its command by `-c`"
        )
    yield from [Inner(script=text) for text in scripts] or [_RUN_TIME]


def _trap(rest: Sequence[str]) -> Iterator[Inner]:
    if rest[:1] and (rest[0] == "--" or not rest[0].startswith("-")):
        yield from (Inner(script=text) for text in rest[rest[0] == "--" :][:1])


def _xargs(rest: Sequence[str]) -> Iterator[Inner]:
    start, pairs = begin("xargs", rest)
    values = dict(pairs)
    place, words = values.get("-I"), rest[start:]
    if place is not None and not values.keys().isdisjoint(("-n", "-L", "--max-args")):
        raise UnreadableError(
            "what `xargs` starts is not clear with `-I` and a number of words or lines",
            "leave the number out; with `-I` it is one line",
        )
    if words:
        yield Inner((*words, UNKNOWN) if place is None else tuple(word.replace(place, UNKNOWN) for word in words))


def _find(rest: Sequence[str]) -> Iterator[Inner]:
    check_known(
        "find", rest, "put a pattern between single quotes, as `-name '*.py'`, and write out other words of `find`"
    )
    position = 0
    while position < len(rest):
        flag = rest[position]
        position += 1
        if flag not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        start = position
        while position < len(rest) and rest[position] != ";":
            # A `+` ends it only behind `{}`.
            if rest[position] == "+" and rest[position - 1] == "{}" and flag.startswith("-exec"):
                break
            position += 1
        # What it finds begins as the folder does where it began to look: with no `-`.
        words = (f"./{word}" if word.startswith("{}") else word for word in rest[start:position])
        yield Inner(tuple(word.replace("{}", UNKNOWN) for word in words))


def _fd(rest: Sequence[str]) -> Iterator[Inner]:
    check_known("fd", rest)
    position = 0
    while position < len(rest):
        word = rest[position]
        position += 1
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            start = position
            while position < len(rest) and rest[position] != ";":
                position += 1
            words = rest[start:position]
            placed = words if any(map(_PLACE.search, words)) else (*words, "{}")
            yield Inner(tuple(_PLACE.sub(UNKNOWN, each) for each in placed))
        elif word.startswith("--exec") or re.match(r"-[^-]*[xX]", word):
            raise UnreadableError(
                f"what `fd` starts is not clear in `{word[:40]}`", "write each option, and its value, as a word"
            )


def _parallel(rest: Sequence[str]) -> Iterator[Inner]:
    words = list(rest[begin("parallel", rest)[0] :])
    signs = [word for word in words if re.fullmatch(r":{3,}\+?", word)]
    if signs != [":::"]:
        raise UnreadableError(
            "what `parallel` starts is known only when it runs", "write the values behind one `:::`, at the end of it"
        )
    place = words.index(":::")
    text, size = " ".join(words[:place]), 0
    for value in words[place + 1 :]:
        size += len(text) + max(1, text.count("{}")) * len(value)
        if size > MAX_PARSED_BYTES:
            raise UnreadableError("`parallel` starts too much", "give it fewer values, and call it several times")
        yield Inner(script=text.replace("{}", value) if "{}" in text else f"{text} {value}".strip())


_SPECIAL: Final[dict[str, Callable[[Sequence[str]], Iterator[Inner]]]] = {
    "fd": _fd,
    "fdfind": _fd,
    "find": _find,
    "flock": _flock,
    "parallel": _parallel,
    "script": partial(_anywhere, "script"),
    "su": _su,
    "trap": _trap,
    "watch": partial(_joined, "watch"),
    "xargs": _xargs,
}
