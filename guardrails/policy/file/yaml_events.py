"""
Bytes or text turned into the events of a YAML parser, or into the one mistake that makes it unreadable.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from guardrails.core.values.late_pattern import pattern

from .yaml_position import Mistake, Position, Source


MAX_BYTES: Final = 1 << 20

# Beside control characters: breaks that are one in YAML 1.1 but not in 1.2, the byte order mark, surrogates.
_FORBIDDEN = pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_BREAK = pattern(r"\r\n|\r|\n")


class UnreadableError(Exception):
    """
    A mistake that ends the reading.
    """

    def __init__(self, position: Position, message: str) -> None:
        super().__init__(message)
        self.mistake = Mistake(position, message)


def decode(text: bytes | str, name: str) -> tuple[str, Source]:
    """
    Returns *text* as characters, whatever it holds, and as a source whose lines can be shown.
    """
    decoded = text if isinstance(text, str) else text.decode(errors="replace")

    return decoded, Source(name, tuple(_BREAK.split(decoded)))


def check_text(text: bytes | str, decoded: str, source: Source) -> None:
    """
    Raise UnreadableError if *text* is too large, is not UTF-8, or holds characters that YAML 1.2 does not allow.
    """
    start = Position(source, 1, 1)

    if len(text) > MAX_BYTES:
        raise UnreadableError(start, f"the file is larger than {MAX_BYTES} bytes")

    if isinstance(text, bytes):
        _check_encoding(text, source)

    if decoded.startswith("\ufeff"):
        raise UnreadableError(start, "the file starts with a byte order mark: save it as UTF-8 without one")

    if found := _FORBIDDEN.search(decoded):
        place = _place(decoded[: found.start()], source)
        raise UnreadableError(place, f"the character U+{ord(found[0]):04X} is not allowed")


def _check_encoding(text: bytes, source: Source) -> None:
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError(Position(source, 1, 1), "the file is UTF-16: save it as UTF-8")

    try:
        text.decode()
    except UnicodeDecodeError as error:
        place = _place(text[: error.start].decode(), source)
        raise UnreadableError(place, f"not UTF-8: byte 0x{text[error.start]:02x}, save the file as UTF-8") from None


def _place(before: str, source: Source) -> Position:
    lines = _BREAK.split(before)

    return Position(source, len(lines), len(lines[-1]) + 1)


def events(text: str, source: Source) -> Iterator[Any]:
    """
    Returns the parser's events, of the C parser if it is there. Raises UnreadableError if *text* is not YAML.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    told = 0

    try:
        for event in yaml.parse(text, Loader=loader):
            told += 1
            yield event
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark and "nesting" in (error.problem or ""):
            # libyaml 0.2.6 bounds the depth too, and reads ahead of its events: those up to there are told first.
            with suppress(yaml.YAMLError):
                yield from islice(yaml.parse(text[: mark.index], Loader=loader), told, None)
        line = min(mark.line, len(source.lines) - 1) if mark else 0
        column = mark.column if mark and mark.line == line else len(source.lines[line])
        problem = ", ".join(part for part in (error.context, error.problem) if part)

        raise UnreadableError(Position(source, line + 1, column + 1), _syntax(problem, source.lines[line])) from None


def _syntax(problem: str, line: str) -> str:
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "a tab in the indentation: use spaces"

    fix = " (a value with `: ` in it needs quotes)" if "mapping values" in problem else ""

    return f"not YAML: {problem}{fix}"
