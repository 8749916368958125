"""
Whether what was tried did the same as a shell, but for the differences that are documented.
"""

import os
import re

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.shellfuzz.jailed.observed import Observed, Started
from tests.shellfuzz.jailed.subject import Told
from tests.shellfuzz.jailed.world import BUILTINS, TOKEN


DOCUMENTED: Final = {
    "builtin": "dash runs its own echo, printf, test, [, true, false, kill and pwd, which cannot be told off",
    "dash": "dash has no `&>`, `<<<` or `time`, and no list in braces, its patterns are by bytes, its `cd` looks for no folder before `..`",
    "dashed": "a name that a pattern gives and that begins with a dash gets `./` before it",
    "dots": "dash, and bash before 5.2, take `.` and `..` for names that `.*` means",
    "path": "a PATH that is empty or not absolute: a shell looks in the working folder, which no `cd` may make a program's",
    "option": "a word that begins with a dash is an option: its patterns are the program's",
    "messages": "what a shell itself says on standard error is said in other words",
    "variables": "_, PWD, OLDPWD and SHLVL are the shell's own",
    "held back": "what leads out, a link, a hard link, a folder as a file, a program without `#!`: refused when it runs",
    "failed": "a folder or file that there is not: dash gives 2 where bash gives 1, 127 where a program cannot be started, and for `command -v` of none",
}
"""By name: what may differ, and is told in the documentation or is no part of the language."""
_FAILED: Final = frozenset({("dash", 1, 2), ("dash", 126, 127), ("dash", 1, 127)})
_OWN: Final = frozenset({b"_", b"PWD", b"OLDPWD", b"SHLVL"})
_SAID: Final = re.compile(rb"(?m)^(?:sh: |dash: |guardrails: |Killed|.*: line \d+: | *\d+ Killed).*(?:\n|\Z)")
"""What bash and dash say themselves, and what our runner says."""
_HELD_BACK: Final = re.compile(
    rb"^guardrails: .*(?:outside the workspace|it is a link, or behind one|has another name| is .*, not a file|no program, and no `#!`|no process could be started|control character)"
)
_NOT_DASH: Final = re.compile(r"&>|<<<|\btime\b|[{\[?]|[^\x00-\x7f]|\bcd\b[^;|&\n]*\.\.")
_BUILTIN: Final = re.compile("|".join(name for name in BUILTINS if name != "["))
_PATH: Final = re.compile(r"\bPATH=(?!/)")
_QUOTE: Final = re.compile(r"\\\n|['\"\\]")
_DOTTED: Final = re.compile(r"\.[\"']*[*?\[]")
_OPTION: Final = re.compile(r"(?:\A|[\s;|&(])-[^\s;|&<>()]*[*?\[]")
_PATTERN: Final = re.compile(r"[*?\[]")


def not_asked(text: str, shell: str, *, takes_dots: bool) -> str | None:
    """
    The name of the difference by which *shell* is not asked about *text*. Returns None if it is.
    """
    bare = _QUOTE.sub("", text)
    if _PATH.search(bare):
        return "path"
    if takes_dots and _DOTTED.search(text):
        return "dots"
    if shell == "dash" and _NOT_DASH.search(text):
        return "dash"
    return "builtin" if shell == "dash" and _BUILTIN.search(bare) else None


def difference(text: str, shell: str, ours: Observed, theirs: Observed, used: Counter[str]) -> str | None:
    """
    What *ours* and *theirs* of *text* differ in first. Returns None if that is nothing; *used* counts documented differences.
    """
    mine, other = _plain(ours), _plain(theirs)
    pairs = _paired(mine, other)
    if pairs is None:
        return f"started {_names(mine)} in place of {_names(other)}"
    for one, two in pairs:
        said = _started_apart(text, one, two, used)
        if said is not None:
            return said
    if mine.output != other.output:
        return f"printed {mine.output[:300]!r} in place of {other.output[:300]!r}"
    if mine.errors != other.errors:
        return f"printed as errors {mine.errors[:9]!r} in place of {other.errors[:9]!r}"
    for part in ("changed", "outside"):
        if getattr(mine, part) != getattr(other, part):
            return f"{part} {_files(getattr(mine, part))} in place of {_files(getattr(other, part))}"
    if mine.code != other.code:
        if (shell, mine.code, other.code) in _FAILED:
            used["failed"] += 1
            return None
        return f"exit code {mine.code} in place of {other.code}"
    return None


def escaped(text: str, ours: Observed) -> str | None:
    """
    How a command that was accepted got out of the workspace. Returns None if it did not.
    """
    if ours.outside:
        return f"wrote outside of the workspace: {_files(ours.outside)}"
    token = TOKEN.encode()
    for started in ours.started:
        if token in started.read:
            return f"{started.program!r} read what lies outside of the workspace"
        if started.folder != b"/world/ws" and not started.folder.startswith(b"/world/ws/"):
            return f"{started.program!r} was started outside of the workspace, in {started.folder!r}"
    return None


def unjudged(told: Told, ours: Observed) -> str | None:
    """
    What a command did that it was not judged to do. Returns None if that is nothing.
    """
    for started in ours.started:
        if not any(_is(started, words, open_ended, folders) for words, open_ended, folders in told.runs):
            return (
                f"{started.program!r} was started with {started.words!r} in {started.folder!r}; judged were {told.runs}"
            )
    for path, _ in ours.changed:
        name = path.decode("utf-8", "surrogateescape")
        if name not in told.writes and name.removeprefix("/world/ws/") not in told.writes:
            return f"{path!r} was written; judged were {sorted(told.writes)}"
    return None


def _is(started: Started, words: tuple[str, ...], open_ended: bool, folders: tuple[str, ...]) -> bool:
    own = [os.fsencode(word) for word in words]
    places = {os.fsencode(os.path.normpath(os.path.join("/world/ws", folder))) for folder in folders}
    return (
        started.program.rpartition(b"/")[2] == own[0].rpartition(b"/")[2]
        and (open_ended or list(started.words) == own[1:])
        and started.folder in places
    )


def held_back(ours: Observed) -> bool:
    """
    Whether the runner did not do something that a shell would have done, and said so: from there on they must differ.
    """
    return any(_HELD_BACK.search(line) for line in ours.said)


def _started_apart(text: str, one: Started, two: Started, used: Counter[str]) -> str | None:
    if one.words != two.words:
        pairs = zip(one.words, two.words, strict=False)
        wanted = tuple(b"./" + word if mine == b"./" + word and word.startswith(b"-") else word for mine, word in pairs)
        if one.words != wanted or len(one.words) != len(two.words) or not _PATTERN.search(text):
            if not _OPTION.search(text) or _unopted(one.words) != _unopted(two.words):
                return f"{one.program!r} got {one.words!r} in place of {two.words!r}"
            used["option"] += 1
        else:
            used["dashed"] += 1
    if one.folder != two.folder:
        return f"{one.program!r} was started in {one.folder!r} in place of {two.folder!r}"
    if one.read != two.read:
        return f"{one.program!r} read {one.read!r} in place of {two.read!r}"
    if one.environment != two.environment:
        apart = sorted(one.environment ^ two.environment)
        return f"{one.program!r} got another environment: {apart!r}"
    return None


def _unopted(words: tuple[bytes, ...]) -> list[bytes]:
    return [word for word in words if not word.startswith((b"-", b"./-"))]


def _paired(mine: Observed, other: Observed) -> list[tuple[Started, Started]] | None:
    """
    The programs of both, one with one. Returns None if they are not as many of each.

    Those of a pipeline end in any order if one does not wait for what the one before it writes.
    """
    if [each.program for each in mine.started] == [each.program for each in other.started]:
        return list(zip(mine.started, other.started, strict=True))
    if Counter(each.program for each in mine.started) != Counter(each.program for each in other.started):
        return None
    ordered = [sorted(each.started, key=lambda one: (one.program, one.words, one.read)) for each in (mine, other)]
    return list(zip(*ordered, strict=True))


def _plain(seen: Observed) -> Observed:
    """
    *seen* without what a shell says itself, and without its own variables.
    """
    started = tuple(
        replace(
            each,
            read=_SAID.sub(b"", each.read),
            environment=frozenset(pair for pair in each.environment if pair[0] not in _OWN),
        )
        for each in seen.started
    )
    errors = tuple(line for line in seen.errors if line.startswith(b"error of "))
    changed = tuple((path, about and (about[0], _SAID.sub(b"", about[1]))) for path, about in seen.changed)
    return replace(seen, started=started, output=_SAID.sub(b"", seen.output), errors=errors, changed=changed)


def _names(seen: Observed) -> list[str]:
    return [each.program.decode(errors="backslashreplace") for each in seen.started][:20]


def _files(changed: tuple[tuple[bytes, tuple[int, bytes] | None], ...]) -> str:
    return ", ".join(_file(path, about) for path, about in changed[:5]) or "no file"


def _file(path: bytes, about: tuple[int, bytes] | None) -> str:
    return f"{path!r} (gone)" if about is None else f"{path!r} ({about[0]:o}, {about[1][:80]!r})"


def documented() -> Iterator[str]:
    """
    The differences that are let pass, as lines.
    """
    return (f"{name}: {said}" for name, said in DOCUMENTED.items())
