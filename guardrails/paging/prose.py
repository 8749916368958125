"""
What a plain text says of itself in a line of its own: "showing 1-10 of 120", "page 1 of 12", "... and 30 more".

Only the first and the last lines are read, and lines in brackets that tell of a cut: what stands in the middle of a text
is what was asked for. Lines are short, so that no pattern takes long.
"""

import re

from collections.abc import Iterator
from typing import Final

from .names import Kind, kind_of
from .signs import NARROW, ON, Fact, Listing


_END_CHARS: Final = 1_600
"""Characters at either end of a text whose lines are read."""
_LINES: Final = 6
_LINE_CHARS: Final = 220
_MARKS: Final = 16
"""Tellings of a cut that are looked at in the middle of a text."""

_N: Final = r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,12})"
_NOUN: Final = (
    r"(?:results?|items?|rows?|lines?|files?|match(?:es)?|entr(?:y|ies)|records?|hits?|documents?|messages?|issues?|pages?"
    r"|keys?|users?|posts?|comments?|commits?|elements?|objects?|products?|events?|articles?|listings?|values?|columns?"
    r"|directories|folders|changes|errors|warnings|tests|failures|problems|characters|chars|tokens|bytes|words|paragraphs"
    r"|hotels|flights|offers|tickets|orders|emails|threads|repositories|branches|jobs|runs|logs|tables|nodes|edges)"
)
_BEFORE: Final = r"(?:^|[.;:,(\[|] {0,2}|\b(?:and|now|currently|only) )"
"""A statement begins a line or follows another: within a line it may be quoted."""
_SHOWN: Final = r"(?:showing|displaying|viewing|listing|returning|returned|shown|displayed)"
_OF: Final = r"\s{0,3}(?:\(?out\s{1,3}of|of|/)\s{1,3}(?:about |approximately |around |over |more than |a total of |the |~ ?)?(?:total )?"
_RANGE: Final = re.compile(
    rf"(?:{_BEFORE}{_SHOWN}\b|^{_NOUN}\b)[^\d]{{0,30}}{_N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{_N}[^\d]{{0,20}}{_OF}{_N}"
)
_BARE_RANGE: Final = re.compile(
    rf"^{_N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{_N}{_OF}{_N}(?:\s{{1,3}}(?:total )?{_NOUN})?(?:\s{{1,3}}(?:shown|total))?\W*$"
)
_PART: Final = re.compile(
    rf"{_BEFORE}{_SHOWN}\b(?: only)?(?: the)?(?: first| top| last| latest| most recent)?:? {{1,3}}{_N}(?: [a-z-]{{1,20}}){{0,3}}{_OF}{_N}"
)
_BARE_PART: Final = re.compile(
    rf"^(?:only |first |top )?{_N}(?: {_NOUN})?{_OF}{_N}(?: (?:total |matching )?{_NOUN})?(?: (?:were |are )?(?:shown|displayed|listed|returned))?\W*$"
)
_PAGE: Final = re.compile(rf"{_BEFORE}(?:{_SHOWN} )?page\s{{0,2}}[:#]?\s{{0,2}}{_N}(?:{_OF}|/){_N}\b")
_MORE: Final = re.compile(
    rf"^(and |plus |\+ ?|& )?{_N} (?:more|additional|further)(?: [a-z]{{1,14}})?(?: {_NOUN})?\b(.{{0,60}})$"
)
_MORE_NOUN: Final = re.compile(rf"^{_N} (?:more|additional|further) {_NOUN}(?: |\W*$)")
_AVAILABLE: Final = re.compile(
    rf"(?:\bmore {_NOUN}(?: (?:that|which))?(?: are| is| were)? (?:available|exist|match|hidden|remain|not shown|follow|omitted)"
    rf"|^there (?:are|is) (?:\w{{1,10}} )?more {_NOUN}\W*$|^has more {_NOUN}\W*$|^more {_NOUN} available)"
)
_NO_MORE: Final = re.compile(rf"^(?:no (?:more|further) {_NOUN}|end of (?:results?|list|output|file))\W*$")
_GO_ON: Final = re.compile(
    rf"\b(?:use|pass|call|request|ask|set|specify|run)\b.{{1,80}}\b(?:for|to (?:get|see|fetch|load|view|continue|retrieve|show|read))"
    rf" (?:the )?(?:next (?:page|part|chunk|batch|{_NOUN})|more {_NOUN}|more\W*$|the rest|remaining {_NOUN})"
)
_TEXT: Final = rf"(?:output|contents?|text|list|response|body|data|{_NOUN})"
_CUT: Final = re.compile(
    rf"^(?:(?:warning|note|info)\W{{1,3}})?(?:the |some )?(?:"
    rf"(?:{_N} )?(?:more |remaining |other )?(?:(?:tool|command|search) )?{_TEXT} (?:(?:was|were|is|are|has been|have been) )?"
    rf"(?:truncated|omitted|clipped|cut off|cut short|not shown|too (?:long|large))"
    rf"|truncated (?:{_TEXT}|at|to|after|from|because|by|{_N})|(?:\w{{1,12}} ){{0,4}}truncated$|truncated:)(?=$|[^a-z]| (?:at|to|after|from|because|due|by|for|in|as)\b)"
)
_OF_A_FILE: Final = re.compile(r"\s{0,8}\d{1,7}(?:\t|\u2192|\|)|\S{1,160}:\d{1,7}[:\-]")
"""A numbered line, or one that a search found."""
_MARK: Final = re.compile(r"truncated|omitted|clipped", re.IGNORECASE)
_INLINE: Final = re.compile(
    rf"(?:…|\.\.\.|\[)\s{{0,2}}{_N} (?:more )?{_NOUN} (?:truncated|omitted|clipped)\s{{0,2}}(?:…|\.\.\.|\])"
    rf"|\[(?:{_TEXT} )?truncated\b[^\]\n]{{0,90}}\]\s{{0,3}}$",
    re.IGNORECASE,
)
_LIMITED: Final = re.compile(
    rf"^(?:showing|displaying) (?:only )?(?:the )?(?:results with pagination|(?:first|top|last|latest) {_N}\b(?!.*\bof\b))"
    rf"|^{_NOUN} (?:are |were )?(?:limited|capped) (?:to|at) {_N}|^(?:there )?(?:may|might) be more\b|^more (?:results?|items|pages|match(?:es)?|entries|rows|records|hits|data)\W*$"
    rf"|\b(?:limit|maximum)(?: of {_N}(?: {_NOUN})?)? (?:was )?reached\b"
)
_MEMBER: Final = re.compile(
    r"^[\"']?([A-Za-z@_][\w .@$-]{1,40}?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([^\"'\s][^\"']{0,160}?)[\"']?,?$"
)
_STRIPPED: Final = " \t\r*_#>()[]{}<=-|/.…·•~`\"'"
_TELLING: Final = (
    "showing", "display", "viewing", "listing", "return", "shown", " of ", "page", "more", "next", "truncat", "omitted",
    "clipped", "cut ", "cursor", "further", "additional", "end of", "limit", "/", "continu", "complete", "maximum", "too l",
)  # fmt: skip


def tell(listing: Listing, text: str) -> None:
    """
    Add to *listing* what *text* says of its own extent.
    """
    pages: list[tuple[int, int]] = []
    for line in _lines(text):
        lowered = line.lower()
        if any(word in lowered for word in _TELLING) and not _OF_A_FILE.match(line):
            _of_line(listing, line, lowered.strip(_STRIPPED), pages)
    if pages:
        # A text of many pages tells of each; the last counts.
        page, of = max(pages)
        if page < of:
            listing.more.append((1, f"This is page {page} of {of}: ask for page {page + 1}."))
        else:
            listing.ends = True
    _of_marks(listing, text)


def _lines(text: str) -> Iterator[str]:
    head = text[:_END_CHARS]
    tail = text[max(_END_CHARS, len(text) - _END_CHARS) :]
    leading = [line for line in head.split("\n") if line.strip()]
    if not tail:
        yield from (line for line in (*leading[:_LINES], *leading[_LINES:][-_LINES:]) if len(line) <= _LINE_CHARS)
        return
    yield from (line for line in leading[:_LINES] if len(line) <= _LINE_CHARS)
    trailing = [line for line in tail.split("\n") if line.strip()]
    yield from (line for line in trailing[-_LINES:] if len(line) <= _LINE_CHARS)


def _of_line(listing: Listing, line: str, said: str, pages: list[tuple[int, int]]) -> None:
    if at := _RANGE.search(said) or _BARE_RANGE.match(said):
        first, last, total = _integers(at)
        _reached(listing, last, total, f"{first} to {last} of {total}")
    elif at := _PAGE.search(said):
        page, of = _integers(at)
        pages.append((page, of))
    elif at := _PART.search(said) or _BARE_PART.match(said):
        shown, total = _integers(at)
        _reached(listing, shown, total, f"{shown} of {total}")
    elif _NO_MORE.match(said):
        listing.ends = True
    elif (at := _MORE.match(said)) and _is_left(line, said, at):
        listing.more.append((2, f"{at[2]} more are not shown: {ON}."))
    elif _AVAILABLE.search(said) or _GO_ON.search(said):
        listing.more.append((3, f"The text says that there is more: {ON}."))
    elif _CUT.match(said):
        listing.more.append((4, f"The text says that it was cut. {NARROW}"))
    elif _LIMITED.search(said):
        listing.doubt = True
    else:
        _of_member(listing, line)


def _is_left(line: str, said: str, at: re.Match[str]) -> bool:
    """
    Whether "30 more" ends a listing: it is led by dots or "and", or names what is left.
    """
    led = at[1] is not None or line.lstrip(" \t/#*([<-").startswith(("...", "…", "+"))
    return led or bool(_MORE_NOUN.match(said)) or not said[at.end(2) :].replace("more", "").strip()


def _integers(at: re.Match[str]) -> list[int]:
    return [int(one.replace(",", "")) for one in at.groups() if one is not None and one[:1].isdecimal()]


def _reached(listing: Listing, last: int, total: int, what: str) -> None:
    if last < total:
        listing.more.append((2, f"This is {what}: {ON}."))
    else:
        listing.ends = True


def _of_member(listing: Listing, line: str) -> None:
    """
    A line like `next cursor: abc`.
    """
    at = _MEMBER.match(line.strip(" \t\r*_#>()[]{}-|"))
    if at is None:
        return
    kind = kind_of(at[1])
    if kind in {Kind.CURSOR, Kind.MORE, Kind.CUT, Kind.BROKEN} or (kind is Kind.WHOLE and at[1].lower() != "eof"):
        name = at[1].strip()
        if kind is Kind.CURSOR and (" " in at[2] or name.lower().startswith("contin")):
            return
        listing.facts.append(Fact(kind, name, at[2].rstrip(","), found=False))


def _of_marks(listing: Listing, text: str) -> None:
    for index, at in enumerate(_MARK.finditer(text)):
        if index == _MARKS:
            return
        around = text[max(0, at.start() - 90) : at.end() + 90]
        if _INLINE.search(around):
            listing.more.append((4, f"The text says that it was cut. {NARROW}"))
            return
