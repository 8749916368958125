"""
Read what a docstring says about each parameter: Google, numpy and reST style.
"""

import re

from collections.abc import Iterator


_GOOGLE_HEADER = re.compile(
    r"(?:args|arguments|params|parameters|keyword args|keyword arguments|other parameters):\s*$", re.IGNORECASE
)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)$")
_NUMPY_HEADER = re.compile(r"(?:other )?parameters\s*$", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_REST_ENTRY = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\\?\*{0,2}(\w+)\s*:\s*(.*)$")

Entries = Iterator[tuple[str, str]]


def parameter_descriptions(docstring: str | None) -> dict[str, str]:
    """
    Returns each parameter name with its description, one line each; the first style that describes a parameter wins.
    """
    lines = (docstring or "").expandtabs().splitlines()
    found: dict[str, str] = {}

    for style in (_google, _numpy, _rest):
        for name, text in style(lines):
            if text:
                found.setdefault(name, text)

    return found


def _google(lines: list[str]) -> Entries:
    for number, line in enumerate(lines):
        if _GOOGLE_HEADER.match(line.strip()):
            block = _below(lines[number + 1 :], _indent(line))
            first = next((_indent(entry) for entry in block if entry.strip()), 0)

            # The first line of a docstring has lost its indent: what follows a header there reaches too far.
            for at, entry in enumerate(_below(block, first - 1)):
                match = _GOOGLE_ENTRY.match(entry.strip())

                if match and _indent(entry) == first:
                    yield match[1], _joined([match[2], *_below(block[at + 1 :], first)])


def _numpy(lines: list[str]) -> Entries:
    for number, line in enumerate(lines):
        if _NUMPY_HEADER.match(line.strip()) and _is_rule(lines, number + 1):
            for at in range(number + 2, len(lines)):
                if _is_rule(lines, at + 1):
                    break

                match = _NUMPY_ENTRY.match(lines[at].strip())

                if match and _indent(lines[at]) == _indent(lines[number + 1]):
                    text = _joined(_below(lines[at + 1 :], _indent(lines[at])))
                    yield from ((name.strip(" *"), text) for name in match[1].split(","))


def _rest(lines: list[str]) -> Entries:
    for number, line in enumerate(lines):
        if match := _REST_ENTRY.match(line.strip()):
            yield match[1], _joined([match[2], *_below(lines[number + 1 :], _indent(line))])


def _below(lines: list[str], indent: int) -> list[str]:
    """
    Returns the leading lines that are blank or indented by more than *indent*.
    """
    for number, line in enumerate(lines):
        if line.strip() and _indent(line) <= indent:
            return lines[:number]

    return lines


def _is_rule(lines: list[str], number: int) -> bool:
    return number < len(lines) and len(lines[number].strip()) > 2 and not lines[number].strip().strip("-")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
