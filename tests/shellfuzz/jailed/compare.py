"""
Whether what was tried did the same as a shell, but for the differences that are documented.
"""

import re

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tests.shellfuzz.jailed.observed import Observed, Started
from tests.shellfuzz.jailed.world import BUILTINS, TOKEN


DOCUMENTED: Final = {
    "builtin": "dash runs its own echo, printf, test, [, true, false, kill and pwd, which cannot be told off",
    "dash": "dash has no `&>`, no list in braces, and patterns of its own: by bytes, with `[^a]` as it comes",
    "dashed": "a name that a pattern gives and that begins with a dash gets `./` before it",
    "option": "a word that begins with a dash is an option: its patterns are the program's",
    "messages": "what a shell itself says on standard error is said in other words",
    "variables": "_, PWD, OLDPWD and SHLVL are the shell's own",
    "failed": "a folder, a file or a program that there is not: dash gives 2 where bash gives 1",
}
"""By name: what may differ, and is told in the documentation or is no part of the language."""
_OWN: Final = frozenset({b"_", b"PWD", b"OLDPWD", b"SHLVL"})
_SAID: Final = re.compile(rb"(?m)^(?:sh: |guardrails: |Killed|.*: line \d+: ).*(?:\n|\Z)")
"""What bash and dash say themselves, and what our runner says."""
_HELD_BACK: Final = re.compile(rb"^guardrails: .*outside of the workspace")
_NOT_DASH: Final = re.compile(r"&>|\{|\[[!^]?|[^\x00-\x7f]")
_PATTERN: Final = re.compile(r"[*?\[]")


def skipped_by_dash(text: str, ours: Observed) -> str | None:
    """
    The name of the difference by which dash is not asked about *text*. Returns None if it is.
    """
    if _NOT_DASH.search(text):
        return "dash"
    names = {started.program.rpartition(b"/")[2].decode(errors="replace") for started in ours.started}
    return "builtin" if names & {*BUILTINS} else None


def difference(text: str, ours: Observed, theirs: Observed, used: Counter[str]) -> str | None:
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
    if mine.output != other.output and not used_only(text, mine.output, other.output):
        return f"printed {mine.output[:300]!r} in place of {other.output[:300]!r}"
    if mine.errors != other.errors:
        return f"printed as errors {mine.errors[:9]!r} in place of {other.errors[:9]!r}"
    for part in ("changed", "outside"):
        if getattr(mine, part) != getattr(other, part):
            return f"{part} {_files(getattr(mine, part))} in place of {_files(getattr(other, part))}"
    if mine.code != other.code:
        if {mine.code, other.code} == {1, 2} and ours.errors != mine.errors:
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
        if any(token in word for word in started.words) and TOKEN not in text:
            return f"{started.program!r} was told the names of what lies outside of the workspace"
        if started.folder != b"/world/ws" and not started.folder.startswith(b"/world/ws/"):
            return f"{started.program!r} was started outside of the workspace, in {started.folder!r}"
    return None


def held_back(ours: Observed) -> bool:
    """
    Whether the runner did not do something that a shell would have done, and said so: from there on they must differ.
    """
    return any(_HELD_BACK.search(line) for line in ours.errors)


def used_only(text: str, mine: bytes, other: bytes) -> bool:
    """
    Whether outputs differ by the `./` before names that begin with a dash only.
    """
    return bool(_PATTERN.search(text)) and mine.replace(b"[./-", b"[-") == other.replace(b"[./-", b"[-")


def _started_apart(text: str, one: Started, two: Started, used: Counter[str]) -> str | None:
    if one.words != two.words:
        if not _PATTERN.search(text) or len(one.words) != len(two.words):
            return f"{one.program!r} got {one.words!r} in place of {two.words!r}"
        for word, other in zip(one.words, two.words, strict=True):
            if word == other:
                continue
            if word != b"./" + other or not other.startswith(b"-"):
                return f"{one.program!r} got {one.words!r} in place of {two.words!r}"
            used["dashed"] += 1
    if one.folder != two.folder:
        return f"{one.program!r} was started in {one.folder!r} in place of {two.folder!r}"
    if one.read != two.read and not used_only(text, one.read, two.read):
        return f"{one.program!r} read {one.read!r} in place of {two.read!r}"
    if one.environment != two.environment:
        apart = sorted(one.environment ^ two.environment)
        return f"{one.program!r} got another environment: {apart!r}"
    return None


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
    errors = tuple(line for line in seen.errors if not _SAID.match(line))
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
