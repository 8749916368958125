"""
The text of a command, split into the words of each simple command in it.

A light reading for a question of which the answer may be wrong: who waits. It takes one pass, needs no parser, expands
nothing and refuses nothing. `guardrails.core.commands` reads with care, for what is forbidden.
"""

import re

from typing import Final, NamedTuple

from guardrails.core.values.late_pattern import pattern


Words = list[str]
Pipeline = list[Words]

# Blanks without `)++`: before Python 3.11.5 that also takes the start of a turn that fails (python/cpython#106052).
_PLAIN: Final = pattern(
    r"""
    (?P<blank>(?:[ \t\r]++|\\\r?\n)+)
    |(?P<comment>\#[^\n]*+)
    |(?P<here><<-?[ \t]*+(?:'(?P<single>[^'\n]*+)'|"(?P<double>[^"\n]*+)"|\\?(?P<bare>[\w.-]++)))
    |(?P<redirect>(?:[0-9]++(?=[<>])|&(?=>))?(?:<<<|>>|>\||<>|[<>]&?)(?!\())
    |(?P<pipe>\|(?!\|)&?)
    |(?P<ends>\n|;|&&?|\|\|)
    |(?P<quote>")
    |(?P<raw>\$?'(?P<inside>[^']*+)'?)
    |(?P<known>\$\(\([^()]*+\)\)|\$\{[^}]*+\}?)
    |(?P<opens>[$<>]?\()
    |(?P<closes>\))
    |(?P<tick>`)
    |\\(?P<escaped>.)
    |(?P<text>[^\s"'`\\$|&;()<>]++|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = pattern(
    r"""(?P<quote>")|(?P<opens>\$\((?!\())|(?P<tick>`)|\\(?P<escaped>.)|(?P<text>[^"\\$`]++|.)""", re.DOTALL
)
"""Between double quotes."""
_ASSIGNMENT: Final = pattern(r"[A-Za-z_]\w*\+?=")
_KEYWORDS: Final = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "done", "fi", "esac"}
)
_FED: Final = pattern(r"(?:.*/)?(?:(?:ba|z|k|da|a)?sh|ssh|python[\d.]*|node|ruby|perl|php)")
"""Programs that run what they are given to read."""
_SUBSTITUTED: Final = "$"
"""Stands in a word for what a command in it prints."""


def pipelines(text: str) -> list[Pipeline]:
    """
    Returns the pipelines of *text*, those in substitutions, subshells and loops too, without keywords and assignments.
    """
    splitter = _Splitter()
    splitter.read(text)
    return splitter.done


class _Open(NamedTuple):
    """
    The command that was under way before a parenthesis or a backtick.
    """

    sign: str
    pipeline: Pipeline
    words: Words
    word: str | None
    quoted: bool


class _Splitter:
    def __init__(self) -> None:
        self.done: list[Pipeline] = []
        self._pipeline: Pipeline = []
        self._words: Words = []
        self._word: str | None = None
        self._quoted = False
        self._redirects = False
        self._here: list[str] = []
        self._open: list[_Open] = []

    def read(self, text: str) -> None:
        at = 0
        # Each piece is a character at least, and any character is one.
        while (match := (_QUOTED if self._quoted else _PLAIN).match(text, at)) is not None:
            at = self._take(match, text)
        while self._open:
            self._leave()
        self._end_pipeline()

    def _take(self, match: re.Match[str], text: str) -> int:
        """
        Take one piece of *text*, and say where the next begins.
        """
        kind, at = match.lastgroup, match.end()
        match kind:
            case "blank":
                self._end_word()
            case "comment" if self._word is None:
                pass
            case "comment":
                self._word = f"{self._word}#"
                return match.start() + 1
            case "here":
                self._end_word()
                self._here.append(match["single"] or match["double"] or match["bare"] or "")
            case "redirect":
                self._end_word()
                self._redirects = True
            case "pipe":
                self._end_command()
            case "ends":
                self._end_pipeline()
                return self._after_bodies(text, at) if match["ends"] == "\n" and self._here else at
            case "quote":
                self._quoted = not self._quoted
                self._word = self._word or ""
            case "raw":
                self._word = (self._word or "") + match["inside"]
            case "opens":
                array = match["opens"] == "(" and (self._word or "").endswith("=")
                self._enter("=(" if array else match["opens"])
            case "closes":
                self._leave()
            case "tick":
                if self._open and self._open[-1].sign == "`":
                    self._leave()
                else:
                    self._enter("`")
            case "escaped":
                self._word = (self._word or "") + ("" if match["escaped"] == "\n" else match["escaped"])
            case _:
                self._word = (self._word or "") + match[0]
        return at

    def _after_bodies(self, text: str, at: int) -> int:
        """
        Returns where the lines of the here-documents that begin at *at* are over.
        """
        for name in self._here:
            end = re.compile(rf"^\t*{re.escape(name)}[ \t\r]*$", re.MULTILINE).search(text, at)
            self._feed(text[at:] if end is None else text[at : end.start()])
            at = len(text) if end is None else end.end()
        self._here = []
        return at

    def _feed(self, body: str) -> None:
        """
        Take the *body* of a here-document for an argument of the program that runs it, as the latest command may.
        """
        latest = self.done[-1][-1] if self.done else []
        program = next((word for word in latest if _FED.fullmatch(word)), None)
        if program is not None:
            self.done.append([[program, "host" if program.endswith("ssh") else "-c", body]])

    def _enter(self, sign: str) -> None:
        self._open.append(_Open(sign, self._pipeline, self._words, self._word, self._quoted))
        self._pipeline, self._words, self._word, self._quoted = [], [], None, False
        self._redirects = False

    def _leave(self) -> None:
        self._end_word()
        if self._open and self._open[-1].sign == "=(":
            # The words of an array are no command.
            self._words = []
        self._end_pipeline()
        if not self._open:
            return
        sign, self._pipeline, self._words, self._word, self._quoted = self._open.pop()
        if sign == "(":
            # What stands before `()` names a function.
            self._words, self._word = [], None
        else:
            self._word = (self._word or "") + _SUBSTITUTED

    def _end_word(self) -> None:
        if self._word is None:
            return
        if self._redirects:
            self._redirects = False
        elif self._words or not (self._word in _KEYWORDS or _ASSIGNMENT.match(self._word)):
            self._words.append(self._word)
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        self._redirects = False
        if self._words:
            self._pipeline.append(self._words)
        self._words = []

    def _end_pipeline(self) -> None:
        self._end_command()
        if self._pipeline:
            self.done.append(self._pipeline)
        self._pipeline = []
