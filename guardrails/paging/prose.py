"""
What a plain text says of itself in a line of its own: "showing 1-10 of 120", "page 1 of 12", "... and 30 more".

Only the first and the last lines are read, and lines in brackets that tell of a cut: what stands in the middle of a text
is what was asked for. Lines are short, so that no pattern takes long.
"""

import re

from typing import Final, NamedTuple

from .listing import NARROW, ON, Fact, Listing
from .names import Kind, kind_of
from .scalars import flag


_END_CHARS: Final = 1_600
"""Characters at either end of a text whose lines are read."""
_LINES: Final = 6
_SPLITS: Final = 18
"""Lines, blank ones too, at either end of a text."""
_LINE_CHARS: Final = 220
_SEARCHED: Final = 262_144
"""Characters in which they are looked for."""
_MAX_MARKS: Final = 16
"""Tellings of a cut that are looked at in the middle of a text."""

_N: Final = r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,12})"
_NOUN: Final = (
    r"(?:results?|items?|rows?|lines?|files?|match(?:es)?|entr(?:y|ies)|records?|hits?|documents?|messages?|issues?|pages?"
    r"|keys?|users?|posts?|comments?|commits?|elements?|objects?|products?|events?|articles?|listings?|values?|columns?"
    r"|directories|folders|changes|errors|warnings|tests|failures|problems|characters|chars|tokens|bytes|words|paragraphs"
    r"|hotels|flights|offers|tickets|orders|emails|threads|repositories|branches|jobs|runs|logs|tables|nodes|edges)"
)
_MATCHES: Final = r"(?:results?|items?|rows?|match(?:es)?|entr(?:y|ies)|records?|hits?|documents?|listings?|data)"
_BEFORE: Final = r"(?:^|[.;:,(\[|] {0,2}|\b(?:and|now|currently|only) )"
"""A statement begins a line or follows another: within a line it may be quoted."""
_SHOWN: Final = r"(?:showing|displaying|viewing|listing|returning|returned|shown|displayed)"
_OF: Final = (
    r"(?:\s{0,3}\(?(?:out\s{1,3})?of\s{1,3}(?:about |approximately |around |over |more than |a total of |the |~ ?)?(?:total )?"
    r"|\s{0,3}/\s{0,3})"
)
_RANGE: Final = re.compile(
    rf"(?:{_BEFORE}{_SHOWN}\b|^(?:[a-z]{{1,12}}:? ){{0,2}}{_NOUN}\b)[^\d]{{0,30}}{_N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{_N}[^\d]{{0,20}}{_OF}{_N}"
)
_BARE_RANGE: Final = re.compile(
    rf"^{_N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{_N}"
    rf"(?: {{0,3}}(?:out )?of {{1,3}}{_N}(?: (?:total )?{_NOUN})?|{_OF}{_N} {_NOUN})(?: (?:shown|total))?\W*$"
)
_PART: Final = re.compile(
    rf"(?:{_BEFORE}{_SHOWN}\b|^(?:{_MATCHES}|count)(?: (?:are|were|is|was) (?:limited|capped|restricted) to)?)(?: only)?(?: the)?"
    rf"(?: first| top| last| latest| most recent)?\W{{1,5}}{_N}(?: [a-z-]{{1,20}}){{0,3}}{_OF}{_N}"
    rf"|^(?:retrieved|fetched|found|got) (?:only )?(?:the )?(?:first )?{_N}{_OF}{_N} {_MATCHES}\b"
)
_BARE_PART: Final = re.compile(
    rf"^(?:only |first |top )?{_N}(?: {_NOUN})?{_OF}{_N} (?:(?:total |matching )?{_MATCHES}\W*$|(?:{_NOUN} )?(?:were |are )?{_SHOWN}\W*$)"
)
_AND_ALL: Final = re.compile(
    rf"(?:{_BEFORE}{_SHOWN} (?:only |the |first |top |last ){{0,3}}{_N}(?: {_NOUN})?|^{_N}(?: {_NOUN})? {_SHOWN})"
    rf"[ ,;(]{{1,3}}(?:of )?{_N} (?:in )?(?:total|found|match)"
)
_ALL_AND: Final = re.compile(
    rf"(?:^|\bfound |\btotal(?: [a-z]{{1,12}})?:? ){_N}(?: {_NOUN})?[ ,.;:(]{{1,4}}{_SHOWN} (?:only |the |first |top |last ){{0,3}}{_N}\b"
)
_PAGE: Final = re.compile(rf"{_BEFORE}(?:{_SHOWN} )?(?:page|p\.)\s{{0,2}}[:#]?\s{{0,2}}{_N}(?:{_OF}|/){_N}\b")
_MORE: Final = re.compile(
    rf"^(and |plus |\+ ?|& )?{_N} (?:more|additional|further|others?)(?: [a-z]{{1,14}})??( {_NOUN})?"
    r"( (?:are |were )?(?:not shown|not displayed|not listed|below|follow|in (?:the )?file|available|hidden|omitted|truncated|found|matched|remaining|left|total))?(?:\W*$|\W*\()"
)
_LISTED: Final = re.compile(rf",.{{0,200}}(?:\band|\+|\u2026|\.\.\.) ?\(?{_N} (?:more|others)(?: {_NOUN})?\W*$")
_AVAILABLE: Final = re.compile(
    rf"(?:\bmore {_NOUN}(?: (?:that|which))?(?: are| is| were)? (?:available|exist|match|hidden|remain|not shown|follow|omitted)"
    rf"|^there (?:are|is) (?:\w{{1,10}} )?more {_NOUN}(?:\W*$|[.;,(])|^(?:the )?(?:\w{{1,12}} )?has more {_NOUN}(?:\W*$|[.;,(])|^more (?:{_NOUN} )?available)"
)
_NO_MORE: Final = re.compile(rf"^(?:no (?:more|further) {_NOUN}|end of (?:results?|list|output|file))\W*$")
_REST: Final = rf"(?:the )?(?:next (?:page|part|chunk|batch|{_NOUN})|more {_MATCHES}|more pages|rest|remaining {_NOUN})"
_SEE: Final = r"(?:for|to (?:get|see|fetch|load|view|continue|retrieve|show|read))"
_ASK: Final = r"(?:use|pass|call|request|ask|set|specify|run|increase|raise|add|provide)"
_GO_ON: Final = re.compile(
    rf"\b{_ASK}\b.{{1,80}}\b{_SEE} (?:{_REST}|more\W*$)|\b{_SEE} {_REST}\W.{{0,40}}\b{_ASK}\b"
    rf"|\b{_ASK}\b.{{1,40}}\b(?:cursor|offset|page|token)\b.{{0,60}} to continue\b|^(?:the )?(?:cursor|token|offset) (?:for|of) {_REST}"
    rf"|^{_SEE} more\b.{{0,20}}\b{_ASK}\b.{{1,60}}\b(?:page|offset|cursor|limit|token|start_index)\b"
)
_BROKEN: Final = re.compile(
    r"\b(?:results?|output|list|data|response) (?:are|is) (?:incomplete|partial|not complete)\b"
    r"|^(?:incomplete|partial) (?:results?|output|data|response|list)\b|\btimed out\b.{0,30}\bpartial\b"
)
_TEXT: Final = (
    r"(?:output|contents?|text|list|response|body|results?|lines?|rows|entries|matches|items|messages|characters|chars|tokens"
    r"|bytes|files|diff|log|history|changes)"
)
_CUT: Final = re.compile(
    rf"^(?:(?:warning|note|info|error)\W{{1,3}})?(?:the |some )?(?:number of )?(?:"
    rf"(?:{_N} )?(?:more |remaining |other )?(?:(?:tool|command|search) )?{_TEXT} (?:(?:was|were|is|are|has been|have been) )?"
    rf"(?:truncated|omitted|clipped|cut off|cut short|not shown)"
    rf"|(?:found |listed )?{_N} {_NOUN} {{1,3}}\(truncated|truncated (?:{_TEXT}|at|to|after|{_N})|truncated:"
    rf"|(?:output|contents?|response|result) (?:is |was )?too (?:long|large))"
    rf"(?=$|[^a-z ]| [^a-z]| (?:at|to|after|from|because|due|by|for)\b)"
)
_CUT_MARK: Final = re.compile(r"^(?:\w{1,12} ){0,4}(?:truncated|omitted|clipped)(?:$|,| \d)")
_OF_A_FILE: Final = re.compile(r"\s{0,8}\d{1,7}(?:\t|\u2192|\|)|\S{1,160}:\d{1,7}[:\-]")
"""A numbered line, or one that a search found."""
_MARKS: Final = ("runcated", "mitted")
"""Of words that begin with either case."""
_INLINE: Final = re.compile(
    rf"(?:…|\.\.\.|\[)\s{{0,2}}{_N} (?:more )?{_NOUN} (?:truncated|omitted|clipped)\s{{0,2}}(?:…|\.\.\.|\])"
    rf"|\[(?:{_TEXT} )?truncated\b[^\]\n]{{0,90}}\]\s{{0,3}}$",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(rf"(?:^|[.:;,] )(?:{_SHOWN} )?only (?:{_SHOWN} )?(?:the )?(?:first|top|last|latest) {_N}\b")
_HIDDEN: Final = re.compile(rf"^(?:and |plus )?{_N} (?:{_MATCHES} |lines |files )?(?:were |are )?(?:not (?:shown|displayed|listed)|hidden)\W*$")
_BRACKETED: Final = re.compile(rf"[\[(]{_N} ?(?:-|\u2013) ?{_N} ?/ ?{_N}[\])]\W{{0,4}}$")
"""A range and its total, as a pager writes them."""
_TOTALLED: Final = re.compile(
    rf"^\W{{0,4}}total(?: {_MATCHES}| found| count)?: ?{_N}\b[^\d\n]{{0,4}}\s{_SHOWN}(?: {_MATCHES})?: ?(?:\d{{1,9}} ?- ?)?{_N}\b", re.MULTILINE
)
_SHOWN_OF: Final = re.compile(
    rf"^\W{{0,4}}{_SHOWN}(?: {_MATCHES})?: ?(?:\d{{1,9}} ?- ?)?{_N}\b[^\d\n]{{0,4}}\stotal(?: {_MATCHES}| found| count)?: ?{_N}\b", re.MULTILINE
)
_PAGE_LINES: Final = re.compile(rf"^(?:current )?page(?: number)?:? {_N}\b[^\d\n]{{0,4}}\s(?:total pages|pages):? {_N}\b", re.MULTILINE)
_LIMITED: Final = re.compile(
    rf"(?:^|[;:,] )(?:showing|displaying) (?:the )?(?:results with pagination|(?:first|top|last|latest) {_N}\b(?!.*\bof\b))"
    rf"|^(?:(?:warning|note|info)\W{{1,3}})?(?:the )?(?:{_NOUN}|output|result set|list) (?:(?:are|were|is|was|has been|have been) )?"
    rf"(?:limited|capped|restricted) (?:to|at) (?:the )?(?:first )?{_N}|(?:^|[.;(] {{0,2}})(?:there )?(?:may|might) be more\b|\bresults? (?:may|might) be (?:incomplete|partial)\b|^more (?:results?|items|pages|match(?:es)?|entries|rows|records|hits|data)\W*$"
    rf"|\b(?:limit|maximum)(?: (?:of )?{_N}(?: {_NOUN})?)? (?:was |has been )?reached\b"
)
_MEMBER: Final = re.compile(
    r"^[\"']?([A-Za-z@_][\w .@$-]{1,40}?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([^\"'\s][^\"']{0,160}?)[\"']?,?$"
)
_STRIPPED: Final = " \t\r*_#>()[]{}<=-|/.…·•~`\"'"
_PAGER: Final = re.compile(r"\s{0,8}-- ?more ?--")
_TAG: Final = re.compile(r"^<[a-z_-]{1,16}>")
_TOKEN: Final = re.compile(r"\d|[=/]|[A-Z].*[a-z].*[A-Z]|[A-Z]{2}")
_STATED: Final = frozenset({Kind.MORE, Kind.CUT, Kind.BROKEN, Kind.WHOLE})
_BRACKETS: Final = frozenset(".[(<\u2026*")
_COUNTED: Final = re.compile(r"\d[^\d].*\d")


class _Telling(NamedTuple):
    """
    The words of a text, in small letters, by the statements that each of them may belong to.
    """

    counted: tuple[str, ...]
    left: tuple[str, ...]
    cut: tuple[str, ...]
    limited: tuple[str, ...]
    member: tuple[str, ...]

    def within(self, line: str) -> "_Telling":
        """
        Those of them that *line* has.
        """
        return _Telling(*(words and tuple([word for word in words if word in line]) for words in self))


_WORDS: Final = _Telling(
    (" of ", "(of ", "page", "show", "display", "return", "list", "result", "fetched", "retrieved"),
    ("more", "additional", "further", "other", "rest", "remaining", "next", "end of", "continue", "hidden", "not "),
    ("truncat", "omitted", "clipped", "cut ", "not shown", "too l", "partial", "complete", "only "),
    ("limit", "maximum", "capped", "restricted", "may be", "might be"),
    ("cursor", "timed", "last", "resum", "token"),
)


def tell(listing: Listing, text: str) -> None:
    """
    Add to *listing* what *text* says of its own extent.
    """
    pages: list[tuple[int, int]] = []
    lines = [line for line in _lines(text) if len(line) <= _LINE_CHARS]
    ends = "\n".join(lines).lower()
    telling = _WORDS.within(ends)
    if telling.counted:
        _of_neighbours(listing, ends, pages)
    for line in lines:
        if line[0] in "[(" and "/" in line and (at := _BRACKETED.match(line)):
            first, last, total = _integers(at)
            if first <= last:
                _reached(listing, last, total, f"{first} to {last} of {total}")
    if any(telling):
        for line in lines:
            _of_line(listing, line, telling, pages)
    if pages:
        # A text of many pages tells of each; the last counts.
        page, of = max(pages)
        if page < of:
            listing.more.append((1, f"This is page {page} of {of}: ask for page {page + 1}."))
        else:
            listing.ends = True
    _of_marks(listing, text)


def _of_neighbours(listing: Listing, ends: str, pages: list[tuple[int, int]]) -> None:
    """
    Two statements that belong together, each by a name of its own: `Total: 120`, `Showing: 10`.
    """
    if "total" not in ends and "pages" not in ends:
        return
    if at := _TOTALLED.search(ends):
        total, last = _integers(at)
        _reached(listing, last, total, f"up to {last} of {total}")
    elif at := _SHOWN_OF.search(ends):
        last, total = _integers(at)
        _reached(listing, last, total, f"up to {last} of {total}")
    if at := _PAGE_LINES.search(ends):
        page, of = _integers(at)
        pages.append((page, of))


def _lines(text: str) -> list[str]:
    """
    The first and the last lines that are not blank.
    """
    if len(text) <= _END_CHARS:
        lines = [line for line in text.split("\n") if line and not line.isspace()]
        return lines if len(lines) <= 2 * _LINES else lines[:_LINES] + lines[-_LINES:]
    head, tail = text[:_END_CHARS].split("\n", _SPLITS), text[-_END_CHARS:].rsplit("\n", _SPLITS)
    leading = [line for line in head[:-1] if line and not line.isspace()]
    trailing = [line for line in tail[1:] if line and not line.isspace()]
    return leading[:_LINES] + trailing[-_LINES:]


def _of_line(listing: Listing, line: str, telling: _Telling, pages: list[tuple[int, int]]) -> None:
    lowered = line.lower()
    words = telling.within(lowered)
    if not any(words) or _OF_A_FILE.match(line):
        return
    said = (_TAG.sub("", lowered, count=1) if lowered[:1] == "<" else lowered).strip(_STRIPPED)
    counted = words.counted and _COUNTED.search(said) is not None
    if counted and (at := _PAGE.search(said)):
        page, of = _integers(at)
        pages.append((page, of))
    elif counted and (at := _RANGE.search(said) or _BARE_RANGE.match(said)):
        first, last, total = _integers(at)
        _reached(listing, last, total, f"{first} to {last} of {total}")
    elif counted and (at := _PART.search(said) or _BARE_PART.match(said) or _AND_ALL.search(said)):
        shown, total = _integers(at)
        _reached(listing, shown, total, f"{shown} of {total}")
    elif counted and (at := _ALL_AND.search(said)):
        total, shown = _integers(at)
        _reached(listing, shown, total, f"{shown} of {total}")
    elif words.left and _NO_MORE.match(said):
        listing.ends = True
    elif words.left and (at := _LISTED.search(said)):
        listing.more.append((2, f"{at[1]} more are not shown: {ON}."))
    elif words.left and (at := _HIDDEN.match(said)):
        if at[1] != "0":
            listing.more.append((2, f"{at[1]} more are not shown: {ON}."))
    elif words.left and (at := _MORE.match(said)) and at[2] != "0" and _is_left(line, said, at):
        listing.more.append((2, f"{at[2]} more are not shown: {ON}."))
    elif words.left and (_AVAILABLE.search(said) or _GO_ON.search(said) or _PAGER.match(lowered)):
        listing.more.append((3, f"The text says that there is more: {ON}."))
    elif words.cut and _BROKEN.search(said):
        listing.broken = f"The text says that the result is not whole. {NARROW}"
    elif words.cut and (
        _ONLY.search(said) or _CUT.match(said) or (_CUT_MARK.match(said) and line.lstrip()[:1] in _BRACKETS)
    ):
        listing.more.append((4, f"The text says that it was cut. {NARROW}"))
    elif (words.limited or words.counted or words.left) and _LIMITED.search(said):
        listing.doubt = True
    elif ":" in line or "=" in line:
        _of_member(listing, line)


def _is_left(line: str, said: str, at: re.Match[str]) -> bool:
    """
    Whether "30 more" ends a listing: it is led by dots or "and", names what is left, or is all of its line.
    """
    led = at[1] is not None or line.lstrip(" \t/#*([<-").startswith(("...", "\u2026", "+"))
    return led or at[3] is not None or at[4] is not None or said.endswith("more")


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
    kind, name, value = kind_of(at[1]), at[1].strip(), at[2]
    if kind is Kind.CURSOR:
        # Words are the types and names of a program.
        is_one = " " not in value and _TOKEN.search(value) is not None and not name.lower().startswith("contin")
        if is_one:
            listing.facts.append(Fact(kind, name, value, found=False))
    elif kind is Kind.NEXT:
        listing.doubt = listing.doubt or value.startswith(("http://", "https://"))
    elif kind in _STATED and _is_statement(line) and flag(value) is not None:
        listing.facts.append(Fact(kind, name, flag(value), found=False))


def _is_statement(line: str) -> bool:
    """
    Whether a line like `has_more: true` is no assignment and no argument of a program.
    """
    if ":" in line:
        return line[:1] not in {" ", "\t"} or '"' in line
    return " " not in line and not line.endswith(",")


def _of_marks(listing: Listing, text: str) -> None:
    for mark in _MARKS:
        at = -1
        for _ in range(_MAX_MARKS):
            at = text.find(mark, at + 1, _SEARCHED)
            if at < 0:
                break
            if _INLINE.search(text, max(0, at - 90), at + 100):
                listing.more.append((4, f"The text says that it was cut. {NARROW}"))
                return
