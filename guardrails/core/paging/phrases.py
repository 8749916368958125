"""
The phrases with which a text tells of its own extent, as patterns over lines in small letters.
"""

import re

from typing import Final

from guardrails.core.values.late_pattern import pattern


N: Final = r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,12})"
NOUN: Final = (
    r"(?:results?|items?|rows?|lines?|files?|match(?:es)?|entr(?:y|ies)|records?|hits?|documents?|messages?|issues?|pages?"
    r"|keys?|users?|posts?|comments?|commits?|elements?|objects?|products?|events?|articles?|listings?|values?|columns?"
    r"|directories|folders|changes|errors|warnings|tests|failures|problems|characters|chars|tokens|bytes|words|paragraphs"
    r"|hotels|flights|offers|tickets|orders|emails|threads|repositories|branches|jobs|runs|logs|tables|nodes|edges)"
)
MATCHES: Final = r"(?:results?|items?|rows?|match(?:es)?|entr(?:y|ies)|records?|hits?|documents?|listings?|data)"
BEFORE: Final = r"(?:^|[.;:,(\[|] {0,2}|\b(?:and|now|currently|only) )"
"""A statement begins a line or follows another: within a line it may be quoted."""
SHOWN: Final = r"(?:showing|displaying|viewing|listing|returning|returned|shown|displayed)"
OF: Final = (
    r"(?:\s{0,3}\(?(?:out\s{1,3})?of\s{1,3}(?:about |approximately |around |over |more than |a total of |the |~ ?)?(?:total )?"
    r"|\s{0,3}/\s{0,3})"
)
RANGE: Final = pattern(
    rf"(?:{BEFORE}{SHOWN}\b|^(?:[a-z]{{1,12}}:? ){{0,2}}{NOUN}\b)[^\d]{{0,30}}{N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{N}[^\d]{{0,20}}{OF}{N}"
)
BARE_RANGE: Final = pattern(
    rf"^{N}\s{{0,3}}(?:-|\u2013|\u2014|\.\.|to|through)\s{{0,3}}{N}"
    rf"(?: {{0,3}}(?:out )?of {{1,3}}{N}(?: (?:total )?{NOUN})?|{OF}{N} {NOUN})(?: (?:shown|total))?\W*$"
)
PART: Final = pattern(
    rf"(?:{BEFORE}{SHOWN}\b|^(?:{MATCHES}|count)(?: (?:are|were|is|was) (?:limited|capped|restricted) to)?)(?: only)?(?: the)?"
    rf"(?: first| top| last| latest| most recent)?\W{{1,5}}{N}(?: [a-z-]{{1,20}}){{0,3}}{OF}{N}"
    rf"|^(?:retrieved|fetched|found|got) (?:only )?(?:the )?(?:first )?{N}{OF}{N} {MATCHES}\b"
)
BARE_PART: Final = pattern(
    rf"^(?:only |first |top )?{N}(?: {NOUN})?{OF}{N} (?:(?:total |matching )?{MATCHES}\W*$|(?:{NOUN} )?(?:were |are )?{SHOWN}\W*$)"
)
AND_ALL: Final = pattern(
    rf"(?:{BEFORE}{SHOWN} (?:only |the |first |top |last ){{0,3}}{N}(?: {NOUN})?|^{N}(?: {NOUN})? {SHOWN})"
    rf"[ ,;(]{{1,3}}(?:of )?{N} (?:in )?(?:total|found|match)"
)
ALL_AND: Final = pattern(
    rf"(?:^|\bfound |\btotal(?: [a-z]{{1,12}})?:? ){N}(?: {NOUN})?[ ,.;:(]{{1,4}}{SHOWN} (?:only |the |first |top |last ){{0,3}}{N}\b"
)
PAGE: Final = pattern(rf"{BEFORE}(?:{SHOWN} )?(?:page|p\.)\s{{0,2}}[:#]?\s{{0,2}}{N}(?:{OF}|/){N}\b")
MORE: Final = pattern(
    rf"^(and |plus |\+ ?|& )?{N} (?:more|additional|further|others?)(?: [a-z]{{1,14}})??( {NOUN})?"
    r"( (?:are |were )?(?:not shown|not displayed|not listed|below|follow|in (?:the )?file|available|hidden|omitted|truncated|found|matched|remaining|left|total))?(?:\W*$|\W*\()"
)
LISTED: Final = pattern(rf",.{{0,200}}(?:\band|\+|\u2026|\.\.\.) ?\(?{N} (?:more|others)(?: {NOUN})?\W*$")
AVAILABLE: Final = pattern(
    rf"(?:\bmore {NOUN}(?: (?:that|which))?(?: are| is| were)? (?:available|exist|match|hidden|remain|not shown|follow|omitted)"
    rf"|^there (?:are|is) (?:\w{{1,10}} )?more {NOUN}(?:\W*$|[.;,(])|^(?:the )?(?:\w{{1,12}} )?has more {NOUN}(?:\W*$|[.;,(])|^more (?:{NOUN} )?available)"
)
NO_MORE: Final = pattern(rf"^(?:no (?:more|further) {NOUN}|end of (?:results?|list|output|file))\W*$")
REST: Final = rf"(?:the )?(?:next (?:page|part|chunk|batch|{NOUN})|more {MATCHES}|more pages|rest|remaining {NOUN})"
SEE: Final = r"(?:for|to (?:get|see|fetch|load|view|continue|retrieve|show|read))"
ASK: Final = r"(?:use|pass|call|request|ask|set|specify|run|increase|raise|add|provide)"
GO_ON: Final = pattern(
    rf"\b{ASK}\b.{{1,80}}\b{SEE} (?:{REST}|more\W*$)|\b{SEE} {REST}\W.{{0,40}}\b{ASK}\b"
    rf"|\b{ASK}\b.{{1,40}}\b(?:cursor|offset|page|token)\b.{{0,60}} to continue\b|^(?:the )?(?:cursor|token|offset) (?:for|of) {REST}"
    rf"|^{SEE} more\b.{{0,20}}\b{ASK}\b.{{1,60}}\b(?:page|offset|cursor|limit|token|start_index)\b"
)
BROKEN: Final = pattern(
    r"\b(?:results?|output|list|data|response) (?:are|is) (?:incomplete|partial|not complete)\b"
    r"|^(?:incomplete|partial) (?:results?|output|data|response|list)\b|\btimed out\b.{0,30}\bpartial\b"
)
TEXT: Final = (
    r"(?:output|contents?|text|list|response|body|results?|lines?|rows|entries|matches|items|messages|characters|chars|tokens"
    r"|bytes|files|diff|log|history|changes)"
)
CUT: Final = pattern(
    rf"^(?:(?:warning|note|info|error)\W{{1,3}})?(?:the |some )?(?:number of )?(?:"
    rf"(?:{N} )?(?:more |remaining |other )?(?:(?:tool|command|search) )?{TEXT} (?:(?:was|were|is|are|has been|have been) )?"
    rf"(?:truncated|omitted|clipped|cut off|cut short|not shown)"
    rf"|(?:found |listed )?{N} {NOUN} {{1,3}}\(truncated|truncated (?:{TEXT}|at|to|after|{N})|truncated:"
    rf"|(?:output|contents?|response|result) (?:is |was )?too (?:long|large))"
    rf"(?=$|[^a-z ]| [^a-z]| (?:at|to|after|from|because|due|by|for)\b)"
)
CUT_MARK: Final = pattern(r"^(?:\w{1,12} ){0,4}(?:truncated|omitted|clipped)(?:$|,| \d)")
OF_A_FILE: Final = pattern(r"\s{0,8}\d{1,7}(?:\t|\u2192|\|)|\S{1,160}:\d{1,7}[:\-]")
"""A numbered line, or one that a search found."""
MARKS: Final = ("runcated", "mitted")
"""Of words that begin with either case."""
INLINE: Final = pattern(
    rf"(?:…|\.\.\.|\[)\s{{0,2}}{N} (?:more )?{NOUN} (?:truncated|omitted|clipped)\s{{0,2}}(?:…|\.\.\.|\])"
    rf"|\[(?:{TEXT} )?truncated\b[^\]\n]{{0,90}}\]\s{{0,3}}$",
    re.IGNORECASE,
)
ONLY: Final = pattern(rf"(?:^|[.:;,] )(?:{SHOWN} )?only (?:{SHOWN} )?(?:the )?(?:first|top|last|latest) {N}\b")
HIDDEN: Final = pattern(
    rf"^(?:and |plus )?{N} (?:{MATCHES} |lines |files )?(?:were |are )?(?:not (?:shown|displayed|listed)|hidden)\W*$"
)
BRACKETED: Final = pattern(rf"[\[(]{N} ?(?:-|\u2013) ?{N} ?/ ?{N}[\])]\W{{0,4}}$")
"""A range and its total, as a pager writes them."""
TOTALLED: Final = pattern(
    rf"^\W{{0,4}}total(?: {MATCHES}| found| count)?: ?{N}\b[^\d\n]{{0,4}}\s{SHOWN}(?: {MATCHES})?: ?(?:\d{{1,9}} ?- ?)?{N}\b",
    re.MULTILINE,
)
SHOWN_OF: Final = pattern(
    rf"^\W{{0,4}}{SHOWN}(?: {MATCHES})?: ?(?:\d{{1,9}} ?- ?)?{N}\b[^\d\n]{{0,4}}\stotal(?: {MATCHES}| found| count)?: ?{N}\b",
    re.MULTILINE,
)
PAGE_LINES: Final = pattern(
    rf"^(?:current )?page(?: number)?:? {N}\b[^\d\n]{{0,4}}\s(?:total pages|pages):? {N}\b", re.MULTILINE
)
LIMITED: Final = pattern(
    rf"(?:^|[;:,] )(?:showing|displaying) (?:the )?(?:results with pagination|(?:first|top|last|latest) {N}\b(?!.*\bof\b))"
    rf"|^(?:(?:warning|note|info)\W{{1,3}})?(?:the )?(?:{NOUN}|output|result set|list) (?:(?:are|were|is|was|has been|have been) )?"
    rf"(?:limited|capped|restricted) (?:to|at) (?:the )?(?:first )?{N}|(?:^|[.;(] {{0,2}})(?:there )?(?:may|might) be more\b|\bresults? (?:may|might) be (?:incomplete|partial)\b|^more (?:results?|items|pages|match(?:es)?|entries|rows|records|hits|data)\W*$"
    rf"|\b(?:limit|maximum)(?: (?:of )?{N}(?: {NOUN})?)? (?:was |has been )?reached\b"
)
MEMBER: Final = pattern(
    r"^[\"']?([A-Za-z@_][\w .@$-]{1,40}?)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([^\"'\s][^\"']{0,160}?)[\"']?,?$"
)
STRIPPED: Final = " \t\r*_#>()[]{}<=-|/.…·•~`\"'"
PAGER: Final = pattern(r"\s{0,8}-- ?more ?--")
TAG: Final = pattern(r"^<[a-z_-]{1,16}>")
TOKEN: Final = pattern(r"\d|[=/]|[A-Z]{2}|(?m:^[^A-Z\n]*[A-Z][^a-z\n]*[a-z][^A-Z\n]*[A-Z])")
BRACKETS: Final = frozenset(".[(<\u2026*")
COUNTED: Final = pattern(r"\d[^\d].*\d")
