"""
Programs that run other commands, and the command that each is given.
"""

import re

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from .found import UNKNOWN


SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash", "csh", "tcsh"})
WRAPPERS: Final = {
    **dict.fromkeys(("!", "builtin", "coproc", "nohup"), ""),
    "command": "-p",
    "env": "-i -v -0 --ignore-environment --debug --null -u= -C= --unset= --chdir=",
    "exec": "-c -l -a=",
    "nice": "-n= --adjustment=",
    "setsid": "-c -f -w --ctty --fork --wait",
    "ssh": "-4 -6 -A -a -C -f -n -q -T -t -v -X -Y -b= -c= -D= -E= -F= -I= -i= -J= -L= -l= -m= -o= -p= -R= -W= 1",
    "stdbuf": "-i= -o= -e= --input= --output= --error=",
    "sudo": "-A -b -E -H -k -n -P -S --preserve-env -u= -g= -h= -p= -C= -r= -t= -T= -U= -D= -R= --user= --group= --chdir=",
    "time": "-a -p -q -v --append --portability --quiet --verbose -f= -o= --format= --output=",
    "timeout": "-f -p -v --foreground --preserve-status --verbose -s= -k= --signal= --kill-after= 1",
    "xargs": "-0 -o -p -r -t -x --no-run-if-empty --null --verbose -I= -n= -L= -P= -s= -d= -E= -a= --max-args= --max-procs=",
}
"""By program its options, a `=` behind those with a value of their own, and the number of words before what it runs."""
_ASSIGNMENT: Final = re.compile(r"-|[A-Za-z_]\w*\+?=")
_STDIN: Final = frozenset({"-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"})
_EXEC: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


class Inner(NamedTuple):
    """
    A command that a program runs: *words* as they are, or a *script* for a shell to read.
    """

    words: tuple[str, ...] = ()
    script: str | None = None
    unclear: str = ""
    """A word of the program itself that is not known: an option may take what stands behind it."""


def started(name: str, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    """
    Returns the commands that the program *name* runs when called with *rest*.

    *stdin* is the program's input: `UNKNOWN` if only the running shell knows it, None if nothing is piped in.
    """
    name = name[1:] if name[:1] == "g" and name[1:] in WRAPPERS else name
    if name in SHELLS:
        yield from _shell(rest, stdin)
    elif name in (".", "source"):
        yield from [Inner(script=stdin or UNKNOWN)] if rest and (rest[0] in _STDIN or rest[0] == UNKNOWN) else []
    elif name in ("eval", "trap"):
        yield Inner(script=" ".join(rest if name == "eval" else [word for word in rest if word[:1] != "-"][:1]))
    elif name in ("su", "script", "runuser"):
        yield from (Inner(script=value) for word, value in pairwise(rest) if re.fullmatch(r"-\w*c|--command", word))
    elif name in ("find", "fd", "fdfind"):
        yield from _found(rest)
    elif name in WRAPPERS and not (name == "command" and rest[:1] and rest[0] in ("-v", "-V")):
        yield from _wrapped(name, rest, stdin)


def _shell(rest: Sequence[str], stdin: str | None) -> Iterator[Inner]:
    place, script, piped = 0, False, False
    while place < len(rest) and rest[place][:1] in ("-", "+") and rest[place] != "-":
        word = rest[place]
        letters = "" if word.startswith("--") else word[1:]
        script = script or "c" in letters or word == "--command"
        piped = piped or "s" in letters
        # Each of these takes a word, also among others: `bash -eo pipefail -c ...`.
        place += 1 + sum(map(letters.count, "oO")) + (word in ("--rcfile", "--init-file"))
    named = rest[place : place + 1]
    if script:
        yield from (Inner(script=word) for word in named)
    elif not named or piped or named[0] in _STDIN:
        yield Inner(script=stdin)
    elif named[0] == UNKNOWN:
        yield Inner(script=UNKNOWN)


def _found(rest: list[str]) -> Iterator[Inner]:
    yield from [Inner(unclear=UNKNOWN)] if any(UNKNOWN in word for word in rest) else []
    for place, word in enumerate(rest):
        if word in _EXEC:
            ends = (at for at in range(place + 1, len(rest)) if rest[at] == ";" or rest[at - 1 : at + 1] == ["{}", "+"])
            yield Inner(tuple(each.replace("{}", UNKNOWN) for each in rest[place + 1 : next(ends, len(rest))]))


def _wrapped(name: str, rest: list[str], stdin: str | None) -> Iterator[Inner]:
    known = WRAPPERS[name].split()
    place, unclear, filled = 0, "", ""
    while place < len(rest) and rest[place].startswith("-") and len(rest[place]) > 1:
        word = rest[place]
        place += 1
        if word == "--":
            break
        if name == "env" and re.match(r"-\w*S|--split-string", word):
            yield Inner(script=re.sub(r"^(-\w*S|--split-string=?)", "", word) or " ".join(rest[place : place + 1]))
            return
        # Letters may stand side by side; the last may have its value in the same word.
        letter = next((n for n, char in enumerate(word) if n and f"-{char}" not in known), len(word) - 1)
        option = word.partition("=")[0] if word.startswith("--") else f"-{word[letter]}"
        if f"{option}=" not in known:
            unclear = unclear or ("" if option in known else word)
        elif "=" not in word and (word.startswith("--") or letter == len(word) - 1):
            place += 1
        if option == "-I":
            filled = word[letter + 1 :] or "".join(rest[place - 1 : place])
    place += known[-1:] == ["1"]
    words = rest[place:]
    unclear = unclear or next((word for word in rest[:place] if UNKNOWN in word), "")
    while words and name in ("env", "sudo", "ssh") and _ASSIGNMENT.match(words[0]):
        words.pop(0)
    if name == "xargs" and words:
        more = stdin.split() if stdin and UNKNOWN not in stdin else [UNKNOWN]
        words = [each.replace(filled, UNKNOWN) for each in words] if filled else [*words, *more]
    if name == "ssh":
        yield Inner(script=" ".join(words) or stdin, unclear=unclear)
    else:
        yield Inner(tuple(words), unclear=unclear)
