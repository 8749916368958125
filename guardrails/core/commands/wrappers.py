"""
Programs that run other commands, and the command that each is given.
"""

import re

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import dropwhile
from typing import Final, NamedTuple

from guardrails.core.commands.grammar.scope import UNKNOWN
from guardrails.core.values.late_pattern import pattern


SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh"})
_LONGEST: Final = 65_536
_ASSIGNMENT: Final = pattern(r"[A-Za-z_]\w*\+?=")


class Inner(NamedTuple):
    """
    A command that a program runs: *words* as they are, or a *script* for a shell to read.
    """

    words: tuple[str, ...] = ()
    script: str | None = None
    arguments: tuple[str, ...] = ()
    """`$0`, `$1`, ... of the script."""
    here: bool = False
    """In the same shell, so that what it sets stays."""


class Options(NamedTuple):
    """
    The options of a program that take a value of their own, and how many words come before the command it runs.
    """

    valued: frozenset[str] = frozenset()
    operands: int = 0


def taking(valued: str = "", operands: int = 0) -> Options:
    """
    Returns options of which those named in *valued* take a value.
    """
    return Options(frozenset(valued.split()), operands)


PREFIXES: Final[dict[str, Options]] = {
    "sudo": taking("-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot"),
    "doas": taking("-u -C"),
    "pkexec": taking("--user"),
    "env": taking("-u -C --unset --chdir"),
    "nohup": taking(),
    "setsid": taking(),
    "time": taking("-f -o --format --output"),
    "nice": taking("-n --adjustment"),
    "ionice": taking("-c -n -p --class --classdata"),
    "chrt": taking("-T -P -D", 1),
    "taskset": taking("", 1),
    "stdbuf": taking("-i -o -e --input --output --error"),
    "timeout": taking("-s -k --signal --kill-after", 1),
    "command": taking(),
    "builtin": taking(),
    "exec": taking("-a"),
    "coproc": taking(),
    "busybox": taking(),
    "toybox": taking(),
    "strace": taking("-e -o -p -s -u -E -P -a -b -O -S -I -X"),
    "ltrace": taking("-e -o -p -s -u -a -n"),
    "chroot": taking("--userspec --groups", 1),
    "unshare": taking("-S -G --setuid --setgid --wd --root"),
    "nsenter": taking("-t -S -G --target"),
    "fakeroot": taking("-s -i -l --lib --faked"),
    "proot": taking("-r -b -w -q -R -S"),
    "systemd-run": taking("-p -u -M -H --property --unit --slice --uid --gid"),
    "xvfb-run": taking("-n -s -e -f -p --server-num --server-args"),
    "caffeinate": taking("-t -w"),
    "parallel": taking("-j -a -I --jobs --arg-file --colsep --joblog --results --tmpdir"),
    **dict.fromkeys(("dbus-run-session", "entr", "unbuffer"), taking()),
    "runuser": taking("-u -g -G --user --group"),
    "setpriv": taking("--reuid --regid --groups"),
}


def inner(name: str, words: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    """
    Returns the commands that the program *name* runs when called with *words*, its own name first.

    *stdin* is the program's input: `UNKNOWN` if only the running shell knows it, None if nothing is piped in.
    """
    rest = list(words[1:])
    special = _SPECIAL.get(name)
    if name in SHELLS:
        yield from _shell(rest, stdin)
    elif special is not None:
        yield from special(rest, stdin)
    elif name in PREFIXES:
        yield from _prefixed(name, rest, stdin)
    elif name.startswith("ld-linux") or (name.startswith("ld-") and ".so" in name):
        yield Inner(tuple(_aftertaking(rest, taking("--library-path --preload --argv0"))))


def filled(text: str, place: str, value: str) -> str:
    """
    Returns *text* with *value* at each *place*; `UNKNOWN` if that is too long to be looked at.
    """
    most = len(text) + max(0, len(value) - len(place)) * text.count(place)
    return text.replace(place, value) if most <= _LONGEST else UNKNOWN


def _alias(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    yield from (Inner(script=value) for _, sign, value in (word.partition("=") for word in rest) if sign)


def _aftertaking(words: list[str], options: Options) -> list[str]:
    """
    Returns *words* from the first that is neither an option nor its value; an option's name may hold its value.
    """
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            break
        if not (word.startswith(("-", "+")) and len(word) > 1):
            break
        position += 2 if word in options.valued else 1
    return words[position + options.operands :]


def _prefixed(name: str, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    if name == "command" and any(word.startswith("-") and {"v", "V"} & set(word) for word in rest[:2]):
        return
    if name == "coproc" and "{" in rest[:2]:
        # The grammar does not know it: `coproc NAME { command; }`.
        rest = rest[rest.index("{") + 1 :]
    if name == "env":
        for place, word in enumerate(rest):
            split = re.fullmatch(r"(?:-[A-Za-z]*S|--split-string=?)(.*)", word, re.DOTALL)
            if split is not None:
                text = split[1] or (rest[place + 1] if place + 1 < len(rest) else "")
                yield Inner(script=text)
                return
    if name in ("strace", "ltrace") and "-p" in rest:
        return
    if name == "runuser":
        yield from _su(rest, stdin)
    words = _aftertaking(rest, PREFIXES[name])
    if name in ("env", "sudo", "doas", "command"):
        words = list(dropwhile(_ASSIGNMENT.match, words))
    if name == "parallel":
        words = words[: words.index(":::")] if ":::" in words else words
        given = rest[rest.index(":::") + 1 :] if ":::" in rest else [stdin or ""]
        text = " ".join(words)
        for one in given:
            yield Inner(script=filled(text, "{}", one) if "{}" in text else f"{text} {one}".strip())
    elif words:
        yield Inner(tuple(words))


def _shell(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    position, script, piped = 0, False, False
    while position < len(rest) and rest[position].startswith(("-", "+")) and rest[position] != "-":
        word = rest[position]
        position += 1
        if word == "--":
            break
        cluster = "" if word.startswith("--") else word[1:]
        script = script or "c" in cluster or word == "--command"
        # Each of these takes a word, also among others: `bash -eo pipefail -c ...`.
        position += sum(map(cluster.count, "oO")) + (word in ("--rcfile", "--init-file"))
        piped = piped or "s" in cluster
    if script:
        if position < len(rest):
            yield Inner(script=rest[position], arguments=tuple(rest[position + 1 :]))
        return
    if position < len(rest) and not piped and rest[position] not in ("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        if rest[position] == UNKNOWN:
            yield Inner(script=UNKNOWN)
        return
    if stdin is not None:
        yield Inner(script=stdin)


def _source(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    if rest[:1] == [UNKNOWN] or (rest and rest[0] in ("/dev/stdin", "/dev/fd/0") and stdin is not None):
        yield Inner(script=stdin or UNKNOWN, here=True)


def _eval(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    yield Inner(script=" ".join(rest), here=True)


def _trap(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    words = rest[rest[:1] == ["--"] :][:1]
    yield from (Inner(script=word) for word in words if not word.startswith("-"))


def _su(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    for place, word in enumerate(rest):
        if re.fullmatch(r"-[A-Za-z]*c|--command", word) and place + 1 < len(rest):
            yield Inner(script=rest[place + 1])
        elif word.startswith("--command="):
            yield Inner(script=word.partition("=")[2])


def _xargs(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    valued = "-I -i -n -L -P -s -d -E -a --arg-file --delimiter --max-args --max-procs --replace --max-lines"
    words = _aftertaking(rest, taking(valued))
    if not words:
        return
    given = stdin or ""
    place = next((rest[i + 1] for i, w in enumerate(rest[:-1]) if w == "-I"), None)
    place = place or next((w[2:] for w in rest if w.startswith("-I") and len(w) > 2), None)
    if place is None:
        yield Inner((*words, *given.replace("\0", " ").split()) if given != UNKNOWN else (*words, UNKNOWN))
        return
    for line in [UNKNOWN] if given in ("", UNKNOWN) else given.splitlines():
        yield Inner(tuple(filled(word, place, line) for word in words))


def below(words: Sequence[str]) -> list[str]:
    """
    Returns the paths that `find` comes upon when called with *words*: one in each of the folders where it starts.
    """
    starts: list[str] = []
    for word in words:
        if word.startswith(("-", "(", "!")) and word not in ("-H", "-L", "-P"):
            break
        starts += [] if word in ("-H", "-L", "-P") else [f"{word.rstrip('/')}/*"]
    return starts or ["./*"]


def _find(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    starts = below(rest)
    position = 0
    while position < len(rest):
        if rest[position] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(position + 1, len(rest)) if rest[i] in (";", "+")), len(rest))
            words = rest[position + 1 : end]
            for start in starts:
                if words:
                    yield Inner(tuple(filled(word, "{}", start) for word in words))
            position = end
        position += 1


def _fd(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    places = [place for place, word in enumerate(rest) if word in ("-x", "--exec", "-X", "--exec-batch")]
    yield from (Inner(tuple(rest[place + 1 :])) for place in places[:1])


def _joined(options: Options, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    words = _aftertaking(rest, options)
    text = " ".join(words) if words else stdin
    if text is not None:
        yield Inner(script=text)


def _flock(rest: list[str], stdin: str | None) -> Iterator[Inner]:
    words = _aftertaking(rest, taking("-w -E --timeout --conflict-exit-code", 1))
    if words[:1] in (["-c"], ["--command"]):
        yield Inner(script=" ".join(words[1:2]))
    elif words:
        yield Inner(tuple(words))


_SPECIAL: Final[dict[str, Callable[[list[str], str | None], Iterator[Inner]]]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "alias": _alias,
    "su": _su,
    "xargs": _xargs,
    "gxargs": _xargs,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "ssh": partial(_joined, taking("-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w", 1)),
    "watch": partial(_joined, taking("-n -q --interval --equexit")),
    "flock": _flock,
    "script": _su,
    **dict.fromkeys(("at", "batch"), lambda _, stdin: iter([] if stdin is None else [Inner(script=stdin)])),
}
