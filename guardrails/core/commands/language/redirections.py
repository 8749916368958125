"""
The parts between words: blanks, comments, line ends, and redirections with their here-documents.
"""

from typing import Final

from guardrails.core.commands.grammar.syntax import UnreadableError
from guardrails.core.values.late_pattern import pattern

from .documents import LAST, body
from .refused import NotInLanguageError, seen
from .tree import Redirection
from .words import Reader


MAX_PARTS: Final = 500
"""Commands, redirections and variables of a script: each is held against each rule."""
_GAP: Final = pattern(r"(?:[ \t]|(?:(?<=[ \t\n;|&])|\A)\\\n)+")
_REDIRECTION: Final = pattern(r"([0-9]*)(&>>|&>|>>|>&|<<<|<<|<&|<>|>\||<\(|>\(|[<>])")
_DELIMITER: Final = pattern(rf"[ \t]*{LAST}(?=[ \t\n;|&<>)]|\Z)")


class Redirecting(Reader):
    """
    Reads what stands between words.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.body: int | None = None
        """Where the line goes on behind the here-documents that began in it."""
        self._parts = 0

    def gap(self, *, lines: bool = False) -> None:
        """
        Go over blanks and comments, with *lines* also over line ends.
        """
        while True:
            found = _GAP.match(self.text, self.place)
            if found is not None:
                if self.body is not None and "\n" in found[0]:
                    raise NotInLanguageError("a backslash at the end of a word", self.place)
                self.place = found.end()
            if self.char == "#" and (self.place == 0 or self.text[self.place - 1] in " \t\n;|&()"):
                end = self.text.find("\n", self.place)
                end = len(self.text) if end < 0 else end
                seen(self.text[self.place : end], self.place)
                self.place = end
            if not (lines and self.char == "\n"):
                return
            self.place, self.body = self.place + 1 if self.body is None else self.body, None

    def count(self) -> None:
        """
        Note one more command, redirection or variable. Raises UnreadableError if there are too many.
        """
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise UnreadableError(
                f"it has more than {MAX_PARTS} commands, redirections and variables", "write them to several calls"
            )

    def one_line(self, place: int) -> None:
        """
        Raise NotInLanguageError if the word from *place* to here goes over a line end behind the beginning of a here-document.
        """
        if self.body is not None and "\n" in self.text[place : self.place]:
            raise NotInLanguageError("a line end between quotes beside a here-document", place)

    def redirected(self, redirections: list[Redirection]) -> bool:
        """
        Read a redirection; whether there was one.
        """
        place = self.place
        found = _REDIRECTION.match(self.text, place)
        if found is None:
            return False
        self.count()
        number, sign = found[1], found[2]
        self.place = found.end()
        if sign in ("<(", ">("):
            raise NotInLanguageError("a substitution", place)
        handle = {"": 0 if sign[0] == "<" else 1, "0": 0, "1": 1, "2": 2}.get(number, -1)
        if handle < 0 or (handle == 0) != (sign[0] == "<") or sign in ("<&", "<>", ">|") or (number and sign[0] == "&"):
            raise NotInLanguageError("a redirection of another handle", place)
        if sign == "<<":
            redirections.append(Redirection(handle=0, kind="text", target=self.document(place)))
            return True
        self.gap()
        begin = self.place
        target = self.target(place)
        if sign == "<<<":
            redirections.append(Redirection(handle=0, kind="text", target=f"{target}\n"))
        elif sign == ">&":
            if target not in ("1", "2") or self.text[begin : self.place] != target:
                raise NotInLanguageError("a redirection of another handle", place)
            redirections.append(Redirection(handle=handle, kind="&", target=target))
        elif sign in ("&>", "&>>"):
            redirections.append(Redirection(handle=1, kind=">" if sign == "&>" else ">>", target=target))
            redirections.append(Redirection(handle=2, kind="&", target="1"))
        else:
            redirections.append(
                Redirection(handle=handle, kind="<" if sign == "<" else ">" if sign == ">" else ">>", target=target)
            )
        return True

    def target(self, place: int) -> str:
        if self.char in ("", "\n", ";", "|", "&", "<", ">", "(", ")"):
            raise NotInLanguageError("a redirection without a file", place)
        begin = self.place
        found = self.words()
        self.one_line(begin)
        if len(found) != 1 or not found[0].is_fixed or found[0].text.startswith("-"):
            raise NotInLanguageError("a redirection to a file known only when it runs", begin)
        numbered = self.char in ("<", ">") and self.text[begin : self.place].isdecimal()
        if not found[0].text or "\n" in found[0].text or numbered:
            # To a shell a number before `>` is a handle.
            raise NotInLanguageError("a redirection without a file", begin)
        return found[0].text

    def document(self, place: int) -> str:
        """
        Returns the text of the here-document whose first word stands here.
        """
        found = _DELIMITER.match(self.text, self.place)
        if found is None:
            raise NotInLanguageError("a here-document of another form", place)
        self.place = found.end()
        begin = self.body
        if begin is None:
            line = self.text.find("\n", self.place)
            begin = len(self.text) if line < 0 else line + 1
        text, self.body = body(self.text, found, begin)
        return text
