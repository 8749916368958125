"""
Reading a text as a script of the language: every character is accounted for, and what is not known is refused.
"""

from typing import Final

from guardrails.core.commands.grammar.syntax import UnreadableError
from guardrails.core.values.late_pattern import pattern

from .redirections import Redirecting
from .refused import BUILTINS, NotInLanguageError
from .tree import Change, Command, Group, Redirection, Script, Sign, Stage, Step, Word
from .words import MAX_WORDS


MAX_CHARACTERS: Final = 65_536
"""Longer texts are not read."""
MAX_NESTED: Final = 8
_KEYWORDS: Final = frozenset(
    {"!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "end", "esac", "fi", "for"}
    | {"foreach", "function", "if", "in", "repeat", "select", "then", "time", "until", "while"}
)
_TIME: Final = pattern(r"time[ \t]+(?![-!])")
_ASSIGNMENT: Final = pattern(r"([A-Za-z_][A-Za-z0-9_]*)=")
_OTHER_ASSIGNMENT: Final = pattern(r"[A-Za-z_][A-Za-z0-9_]*(?:\+=|\[)")


def read(text: str) -> Script:
    """
    Returns the script that *text* is.

    Raises NotInLanguageError for the first thing in it that the language does not have, UnreadableError for more than 65,536
    characters.
    """
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(
            f"it has {len(text):,} characters (limit {MAX_CHARACTERS:,})", "write the text to a file, and name that"
        )
    reader = _Script(text)
    script = reader.script(0)
    if reader.place < len(text):
        raise NotInLanguageError("a group", reader.place)
    return script


class _Script(Redirecting):
    """
    A text while it is read.
    """

    def script(self, depth: int) -> Script:
        """
        Returns the steps from here to the end, or to the parenthesis that ends the group.
        """
        steps: list[Step] = []
        sign: Sign = ";"
        while True:
            self.gap(lines=True)
            if not self.char or (self.char == ")" and depth):
                if sign != ";":
                    raise NotInLanguageError("a missing command", self.place)
                break
            timed = _TIME.match(self.text, self.place)
            if timed is not None:
                self.place = timed.end()
            steps.append(Step(sign=sign, stages=self.stages(depth), timed=timed is not None))
            sign = ";"
            if self.text.startswith(("&&", "||"), self.place):
                sign = "&&" if self.char == "&" else "||"
                self.place += 2
            elif self.char == ";":
                self.place += 1
                if self.char and self.char in ";&":
                    # Signs of `case`.
                    raise NotInLanguageError("a missing command", self.place)
            elif self.char == "&":
                raise NotInLanguageError("a job in the background", self.place)
            elif self.char not in ("", "\n", ")"):
                raise NotInLanguageError("a group", self.place)
            elif self.char == ")" and not depth:
                break
        return Script(tuple(steps))

    def stages(self, depth: int) -> tuple[Stage, ...]:
        """
        Returns the commands that are piped into each other from here on.
        """
        begin = self.place
        stages = [self.stage(depth)]
        while self.char == "|" and not self.text.startswith("||", self.place):
            if self.text.startswith("|&", self.place):
                raise NotInLanguageError("a pipe of both outputs", self.place)
            self.place += 1
            self.gap(lines=True)
            stages.append(self.stage(depth))
        if len(stages) > 1 and any(isinstance(stage, Change) for stage in stages):
            raise NotInLanguageError("a change of folder of another form", begin)
        return tuple(stages)

    def stage(self, depth: int) -> Stage:
        self.count()
        if self.char != "(":
            return self.command()
        begin = self.place
        if self.text.startswith("((", begin):
            raise NotInLanguageError("a group", begin)
        if depth >= MAX_NESTED:
            raise NotInLanguageError("nested too deep", begin)
        self.place += 1
        script = self.script(depth + 1)
        if self.char != ")" or not script.steps or self.body is not None:
            raise NotInLanguageError("a group", begin)
        self.place += 1
        redirections: list[Redirection] = []
        self.gap()
        while self.redirected(redirections):
            self.gap()
        return Group(script=script, redirections=tuple(redirections))

    def command(self) -> Command | Change:
        begin = self.place
        words: list[Word] = []
        assignments: list[tuple[str, str]] = []
        redirections: list[Redirection] = []
        while True:
            self.gap()
            place = self.place
            if self.redirected(redirections):
                continue
            if self.char in ("", "\n", ";", "|", "&", ")"):
                break
            if self.char == "(":
                raise NotInLanguageError("a function" if words else "a group", place)
            if not words and self.assigned(assignments):
                continue
            if not words:
                words.append(self.program())
            else:
                words += self.argument()
            if len(words) > MAX_WORDS:
                raise NotInLanguageError("too many words", place)
        if not words and assignments:
            raise NotInLanguageError("a variable without a command", begin)
        if not words:
            raise NotInLanguageError("no name of a program" if redirections else "a missing command", begin)
        if words[0].text == "cd":
            return _change(words, assignments, redirections, begin)
        name = words[0].text
        if name in BUILTINS and not (
            name == "command" and len(words) == 3 and words[1].text == "-v" and words[2].is_fixed
        ):
            raise NotInLanguageError("a command that only a shell has", begin, BUILTINS[name])
        return Command(words=tuple(words), assignments=tuple(assignments), redirections=tuple(redirections))

    def program(self) -> Word:
        place = self.place
        if self.char == "[":
            # The program of that name, with `]` as its last word.
            self.place += 1
            if self.text.startswith("[", self.place):
                raise NotInLanguageError("a word of the shell's own language", place)
            if self.char not in (" ", "\t"):
                raise NotInLanguageError("no name of a program", place)
            return Word(("[",))
        if self.char == "!":
            raise NotInLanguageError("a negation", place)
        if self.char in "{}":
            raise NotInLanguageError("a group", place)
        found = self.words()
        text = found[0].text
        if text in _KEYWORDS:
            raise NotInLanguageError("a word of the shell's own language", place)
        if len(found) > 1 or not found[0].is_fixed or not text or text.startswith(("%", "-")) or "\n" in text:
            raise NotInLanguageError("no name of a program", place)
        if "=" in text:
            raise NotInLanguageError("a variable of another form", place)
        self.one_line(place)
        return found[0]

    def argument(self) -> list[Word]:
        place = self.place
        found = self.words()
        self.one_line(place)
        return found

    def assigned(self, assignments: list[tuple[str, str]]) -> bool:
        """
        Read `NAME=value`; whether there was one.
        """
        place = self.place
        if _OTHER_ASSIGNMENT.match(self.text, place):
            raise NotInLanguageError("a variable of another form", place)
        found = _ASSIGNMENT.match(self.text, place)
        if found is None:
            return False
        self.place = found.end()
        value = self.words(value=True)
        if len(value) != 1 or self.char in ("<", ">", "("):
            raise NotInLanguageError("a variable of another form", place)
        self.one_line(place)
        self.count()
        assignments.append((found[1], value[0].text))
        return True


def _change(
    words: list[Word], assignments: list[tuple[str, str]], redirections: list[Redirection], place: int
) -> Change:
    folders = words[1:]
    if folders and folders[0].text == "--" and len(folders) == 2:
        del folders[0]
    folder = folders[0].text if len(folders) == 1 and folders[0].is_fixed else ""
    if assignments or not folder or folder.startswith("-") or "\n" in folder:
        raise NotInLanguageError("a change of folder of another form", place)
    return Change(folder=folder, redirections=tuple(redirections))
