"""
Stack traces in text. Tracebacks of Python, IPython, JavaScript and Java are taken out, so that the line that names the
error stays. The exceptions that Python's name are read.
"""

from collections.abc import Iterator
from typing import Final

from guardrails.core.values.late_pattern import pattern


_TRACEBACK: Final = "Traceback (most recent call last)"
_CHAINED: Final = ("During handling of the above exception", "The above exception was the direct cause")
_ESCAPED_NEWLINE: Final = pattern(r"(?<!\\)\\n")
_FRAME: Final = pattern(r"""\s+File "[^"]{1,1000}", line \d""")
_STACK_LINE: Final = pattern(
    r"\s+at \S.*(?::\d+\)?|\((?:native|Native Method|Unknown Source|<anonymous>)\))$|\s+\.\.\. \d+ more$"
)
_HEADING: Final = pattern(r"\s{0,8}([A-Z]\w{2,60}) {2,80}Traceback")
_RULE: Final = pattern(r"-{20,}$")


def raised_in(text: str) -> list[str]:
    """
    Returns the lines that name the exceptions of Python's stack traces in *text*, in order: those right after the
    frames.
    """
    named: list[str] = []
    margin: str | None = None
    for line in _lines(text):
        if _TRACEBACK in line:
            heading = _HEADING.match(line)
            margin = (
                None if heading else line[: line.index(_TRACEBACK)].removesuffix("Exception Group ").replace("+", "|")
            )
            if heading:
                # IPython says the name first, and its frames stand at the margin.
                named.append(heading[1])
        elif margin is not None:
            said = line.removeprefix(margin)
            if said and not said[0].isspace():
                named.append(said)
                margin = None
    return named


def without_traceback(text: str) -> str:
    """
    Returns *text* without its stack traces. The line of the last of chained exceptions stays: it is the one that got
    out.

    One pass over the lines; meant for text that is already bounded.
    """
    if "\n" not in text and _TRACEBACK not in text:
        return text

    kept: list[str] = []
    lines = iter(_lines(text))
    for line in lines:
        if _TRACEBACK in line:
            _take_python(line, lines, kept)
        elif _FRAME.match(line):
            kept.append(_error_line(lines))
        elif line.startswith(_CHAINED):
            while kept and not kept.pop().strip():
                continue
        elif not _STACK_LINE.match(line):
            kept.append(line)

    return "\n".join(kept)


def _lines(text: str) -> list[str]:
    return (text if "\n" in text else _ESCAPED_NEWLINE.sub("\n", text)).splitlines()


def _take_python(start: str, lines: Iterator[str], kept: list[str]) -> None:
    before = start[: start.index(_TRACEBACK)]
    said = before.strip(" |+").removesuffix("Exception Group").rstrip()
    if said and before.endswith("  "):
        # IPython: `ValueError      Traceback (most recent call last)` under a rule, frames that are not indented.
        if kept and _RULE.match(kept[-1]):
            kept.pop()
        kept.append(_last_line(lines))
        return

    if said:
        kept.append(said)
    kept.append(_error_line(lines))


def _error_line(lines: Iterator[str]) -> str:
    """
    Returns the line after the frames; an exception group indents that one too, then it is the last one that says
    something.
    """
    last = ""
    for line in lines:
        if line and not line[0].isspace():
            return line
        last = line.strip(" |+-\t") or last
    return last


def _last_line(lines: Iterator[str]) -> str:
    last = ""
    for line in lines:
        last = line.strip() or last
    return last
