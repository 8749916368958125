"""
Describes, in words for a person, a file that gives no calls.
"""

import re

from typing import Any, Final

from .leading import leading_values
from .parsing import parse


MAX_KEYS: Final = 5
_KEY_CHARS: Final = 24
_SAMPLE: Final = 20
"""Lines that are held against each other."""
_MAGIC: Final = {
    b"PAR1": "a Parquet file",
    b"SQLite format 3\0": "an SQLite database",
    b"PK\3\4": "a ZIP archive",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"\x7fELF": "a program",
    b"BZh": "data packed with bzip2",
    b"\xfd7zXZ": "data packed with xz",
}
_TAR: Final = b"ustar"
_TAR_AT: Final = 257
_MARKS: Final = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_WIDE: Final = {"x000": "UTF-32", "000x": "UTF-32", "x0x0": "UTF-16", "0x0x": "UTF-16"}
"""Which of the first four bytes are zeros if they are plain characters."""
_PLAIN: Final = frozenset(b"\t\n\r") | frozenset(range(0x20, 0x7F))
_SECTION: Final = re.compile(r"\[[^][{}\"\n]*\][ \t\r]*\n")
"""A heading of a file of settings."""
_SEPARATORS: Final = {",": "commas", "\t": "tabs", ";": "semicolons"}


def wide_text(head: bytes) -> str | None:
    """
    Returns the kind of a file that begins with *head*, if that is text with more than a byte to each character. Returns
    None otherwise.
    """
    wide = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if wide is None and set(head[:4].replace(b"\0", b"")) <= _PLAIN:
        wide = _WIDE.get("".join("x" if byte else "0" for byte in head[:4]))
    return None if wide is None else f"{wide} text; convert it to UTF-8"


def no_text(head: bytes) -> str | None:
    """
    Returns the known kind of file, not text, that begins with *head*, if there is one. Lines may stand in it as they
    are, but not all of them.
    """
    if head.startswith(_TAR, _TAR_AT):
        return "a tar archive"
    return next((said for start, said in _MAGIC.items() if head.startswith(start)), None)


def looks_like(head: bytes, *, more: bool = False) -> str:
    """
    Returns the kind of a file that begins with *head*, and its length. If there is *more* in it, that is how long it is
    at least.
    """
    wide = wide_text(head)
    if wide is not None:
        return wide
    other = no_text(head)
    if other is not None or b"\0" in head or _is_garbled(head):
        return f"{other or 'binary data'}, {_bytes(head, more=more)}"
    lines = head.count(b"\n") + (not head.endswith(b"\n"))
    least = "at least " if more else ""
    return f"{_text(head, more=more)}, {least}{lines:,} line{'' if lines == 1 else 's'}, {_bytes(head, more=more)}"


def _bytes(head: bytes, *, more: bool) -> str:
    return f"{'more than ' if more else ''}{len(head):,} byte{'' if len(head) == 1 else 's'}"


def _is_garbled(head: bytes) -> bool:
    """
    Whether a twentieth of *head* or more is no UTF-8.
    """
    return head.decode("utf-8", "replace").count("\ufffd") * 20 > len(head)


def _text(head: bytes, *, more: bool) -> str:
    text = head.decode("utf-8", "replace")
    start = text.lstrip("\ufeff \t\r\n")
    if not start:
        return "blank lines"
    values = leading_values(text)
    if values:
        return _json(values, head, more=more)
    if not start.replace("[]", "").replace("{}", "").strip():
        return "JSON with nothing in it"
    if start[0] in "{[" and not _SECTION.match(start):
        return "JSON that is cut off or damaged"
    if start[0] == "<":
        return "HTML or XML"
    rows = [line for line in text.splitlines() if line.strip()][:_SAMPLE]
    if len(rows) > 1:
        for separator, said in _SEPARATORS.items():
            counts = {row.count(separator) for row in rows[: len(rows) - more]}
            if len(counts) == 1 and counts != {0}:
                return f"a table separated by {said}"
    return "text"


def _json(values: list[Any], head: bytes, *, more: bool) -> str:
    kind = "JSON lines of another form" if len(values) > 1 else "JSON of another form"
    if not more and not _ends_whole(values, head):
        kind = "JSON lines of which the last is cut off" if len(values) > 1 else "JSON that is cut off"
    found = [each for value in values[:_SAMPLE] for each in (value[:_SAMPLE] if type(value) is list else [value])]
    keys = list(dict.fromkeys(key for value in found if type(value) is dict for key in value))
    if not keys:
        return f"{kind}, without an object"
    shown = ", ".join(f"`{key[:_KEY_CHARS]}`" for key in keys[:MAX_KEYS])
    return f"{kind} (keys {shown}{', ...' if len(keys) > MAX_KEYS else ''})"


def _ends_whole(values: list[Any], head: bytes) -> bool:
    text = head.strip() if len(values) == 1 else head.strip().rpartition(b"\n")[2]
    try:
        parse(text.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return False
    return True
