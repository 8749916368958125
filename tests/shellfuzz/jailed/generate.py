"""
Commands by chance, each told by a seed and its number: honest ones, near misses, ways out, mutated texts and noise.
"""

import random

from collections.abc import Mapping, Sequence
from typing import Final


KINDS: Final = ("honest", "near", "leaving", "mutated", "noise", "joined", "long")
_WEIGHTS: Final = (44, 18, 10, 14, 7, 6, 1)


_ASCII: Final = "".join(map(chr, range(32, 127))) + "\t\n\r  ''\"\"\\\\&&||;;<<>>$$`*?[](){}~#!="


class Commands:
    """
    The commands of a seed, put together from *pieces*; *corpus* are the texts that are mutated.
    """

    def __init__(self, seed: int, pieces: Mapping[str, Sequence[str]], corpus: Sequence[str]) -> None:
        self.seed = seed
        self.pieces = pieces
        self.corpus = corpus
        makers = (self._honest, self._near, self._leaving, self._mutated, self._noise, self._joined, self._long)
        self.makers = dict(zip(KINDS, makers, strict=True))

    def command(self, number: int) -> tuple[str, str]:
        """
        The kind and the text of command *number*.
        """
        by = random.Random(f"{self.seed}:{number}")
        kind = by.choices(KINDS, _WEIGHTS)[0]
        return kind, self.makers[kind](by)

    def _honest(self, by: random.Random) -> str:
        return self._script(by, 0)

    def _script(self, by: random.Random, depth: int) -> str:
        text = self._stage(by, depth)
        while by.random() < 0.35:
            text += by.choice(self.pieces["signs"]) + self._stage(by, depth)
        return text + (by.choice((";", "\n", " ", " # note", "; ")) if by.random() < 0.06 else "")

    def _stage(self, by: random.Random, depth: int) -> str:
        chance = by.random()
        if chance < 0.05:
            return by.choice(
                (
                    "cd src",
                    "cd src/lib",
                    "cd ./empty",
                    "cd dir-in",
                    "cd nowhere",
                    "cd a.txt",
                    "cd 'src'",
                    "cd .",
                    "cd src/..",
                    "cd -- src",
                )
            )
        if chance < 0.1 and depth < 3:
            redirected = " " + by.choice(self.pieces["redirected"]) if by.random() < 0.3 else ""
            return by.choice(("({})", "( {} )", "( {}; )", "(\n{}\n)")).format(self._script(by, depth + 1)) + redirected
        if chance < 0.13:
            return self._document(by)
        parts = []
        if by.random() < 0.1:
            parts.append(by.choice(self.pieces["assigned"]))
        if by.random() < 0.04:
            parts.append(by.choice(self.pieces["redirected"]))
        parts.append(by.choice(self.pieces["programs"][:19] if by.random() < 0.6 else self.pieces["programs"]))
        parts += [self._word(by) for _ in range(by.choice((0, 1, 1, 2, 2, 3, 5)))]
        while by.random() < 0.22:
            parts.insert(by.randint(1, len(parts)), by.choice(self.pieces["redirected"]))
        return by.choice((" ", " ", " ", " ", "  ", "\t", " \\\n ")).join(parts)

    def _word(self, by: random.Random) -> str:
        chance = by.random()
        if chance < 0.4:
            return by.choice(self.pieces["plain"])
        if chance < 0.55:
            return by.choice(self.pieces["quoted"])
        if chance < 0.62:
            return by.choice(self.pieces["escaped"])
        if chance < 0.84:
            return by.choice(self.pieces["patterns"])
        kinds = (self.pieces["plain"], self.pieces["quoted"], self.pieces["escaped"], self.pieces["patterns"])
        return "".join(by.choice(by.choice(kinds)) for _ in range(by.randint(2, 4)))

    def _document(self, by: random.Random) -> str:
        last = by.choice(("EOF", "E", "'EOF'", '"EOF"', "\\EOF", "E1", "'E'"))
        lines = [
            by.choice(
                (
                    "text",
                    "",
                    "a b",
                    "$x",
                    "$(ls)",
                    "`ls`",
                    "it's",
                    '"',
                    "\\",
                    "EOF x",
                    " EOF",
                    "\tEOF",
                    "cost 5$",
                    "*",
                    "E\\",
                )
            )
            for _ in range(3)
        ]
        behind = by.choice(
            ("", "", " | cat", " > out.txt", " && ls", " -n", " ; ls a.txt", "\t", " # note", " 'a'", " <<B\nb\nB")
        )
        if by.random() < 0.2:
            behind, program = "", by.choice(("git commit -m ", "ls ", "ls a", "A=1 ls ", "")) + '"$(cat '
        else:
            program = "cat "
        name = last.strip("'\"\\")
        end = by.choice(("\n", "\n", "", "\nls\n", "\n\n", " \n", "\ncat a.txt", ";ls\n"))
        return (
            f"{program}<<{by.choice(('', ' ', '-'))}{last}{behind}\n"
            + "\n".join([*lines[: by.randint(0, 3)], name])
            + end
            + (by.choice((')"', '\n)"', '\n)" a.txt', ' )"', "")) if program.endswith("(cat ") else "")
        )

    def _near(self, by: random.Random) -> str:
        text = self._script(by, 0)
        for _ in range(by.choice((1, 1, 1, 2, 3))):
            piece = by.choice(by.choice((self.pieces["near"], self.pieces["near"], self.pieces["strange"])))
            blank = by.choice(("", " "))
            places = [
                0,
                len(text),
                by.randint(0, len(text)),
                *(place for place, char in enumerate(text) if char in " ;|&\n"),
            ]
            place = by.choice(places)
            text = text[:place] + blank + piece + blank + text[place:]
        return text

    def _leaving(self, by: random.Random) -> str:
        piece = by.choice(self.pieces["leaving"])
        begin = (
            by.choice(("", "cd src && ", "cd dir-in; ", "true; ", "ls | ", "(", "LANG=C ")) if by.random() < 0.3 else ""
        )
        program = (
            ""
            if piece.startswith(("cd", "(", "HOME", "CDPATH"))
            else by.choice(("cat", "ls", "grep x", "./tool", "git -C")) + " "
        )
        end = (
            by.choice(
                ("", "; ls *", " && cat < a.txt", " | cat", " > out.txt", " " + by.choice(self.pieces["leaving"]), ")")
            )
            if by.random() < 0.3
            else ""
        )
        return begin + program + piece + end + (")" if begin == "(" else "")

    def _mutated(self, by: random.Random) -> str:
        text = by.choice(self.corpus)[:2000]
        for _ in range(by.choice((0, 1, 1, 2, 3, 6))):
            place = by.randint(0, len(text))
            match by.randint(0, 5):
                case 0:
                    text = text[:place] + text[place + by.randint(1, 4) :]
                case 1:
                    text = (
                        text[:place]
                        + by.choice(
                            by.choice(
                                (
                                    self.pieces["near"],
                                    self.pieces["quoted"],
                                    self.pieces["escaped"],
                                    self.pieces["patterns"],
                                )
                            )
                        )
                        + text[place:]
                    )
                case 2:
                    text = text[:place] + by.choice(_ASCII) + text[place:]
                case 3:
                    text = text[:place] + by.choice(self.pieces["exotic"]) + text[place + 1 :]
                case 4:
                    other = by.choice(self.corpus)[:2000]
                    text = text[:place] + other[by.randint(0, len(other)) :]
                case _:
                    end = by.randint(place, len(text))
                    text = text[:end] + text[place:end] + text[end:]
        return text

    def _noise(self, by: random.Random) -> str:
        length = by.choice((1, 2, 3, 5, 8, 13, 30, 80))
        match by.randint(0, 4):
            case 0:
                return bytes(by.randrange(256) for _ in range(length)).decode("utf-8", "surrogateescape")
            case 1:
                return "".join(by.choice(_ASCII) for _ in range(length))
            case 2:
                return "ls " + "".join(by.choice((*_ASCII, *self.pieces["exotic"])) for _ in range(length))
            case 3:
                return "".join(
                    chr(by.choice((by.randrange(256), by.randrange(0x3000), by.randrange(0x110000))))
                    for _ in range(length)
                )
            case _:
                kinds = (
                    self.pieces["near"],
                    self.pieces["strange"],
                    self.pieces["quoted"],
                    self.pieces["patterns"],
                    self.pieces["redirected"],
                    self.pieces["assigned"],
                    self.pieces["signs"],
                )
                return by.choice(("", "ls ")) + "".join(by.choice(by.choice(kinds)) for _ in range(min(length, 9)))

    def _joined(self, by: random.Random) -> str:
        makers = (self._honest, self._near, self._leaving, self._mutated, self._noise)
        return by.choice(self.pieces["signs"]).join(by.choice(makers)(by) for _ in range(by.randint(2, 3)))

    def _long(self, by: random.Random) -> str:
        piece, length = by.choice(self.pieces["hostile"]), by.choice((500, 5_000, 20_000, 60_000, 70_000))
        middle = piece * (length // len(piece))
        return (
            by.choice(("", "ls ", "ls '", 'ls "', "cat <<E\n", "LANG=", "ls > ", "ls ["))
            + middle
            + by.choice(("", "'", '"', "\nE\n", " b", "]"))
        )
