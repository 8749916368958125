"""
Commands by chance, each told by a seed and its number: honest ones, near misses, ways out, mutated texts and noise.
"""

import random

from collections.abc import Sequence
from typing import Final

from tests.shellfuzz.jailed import pieces


KINDS: Final = ("honest", "near", "leaving", "mutated", "noise", "joined", "long")
_WEIGHTS: Final = (44, 18, 10, 14, 7, 6, 1)


def command(seed: int, number: int, corpus: Sequence[str]) -> tuple[str, str]:
    """
    The kind and the text of command *number* of *seed*; *corpus* are the texts that are mutated.
    """
    by = random.Random(f"{seed}:{number}")
    kind = by.choices(KINDS, _WEIGHTS)[0]
    return kind, _MAKERS[kind](by, corpus)


def _honest(by: random.Random, corpus: Sequence[str]) -> str:
    return _script(by, 0)


def _script(by: random.Random, depth: int) -> str:
    text = _stage(by, depth)
    while by.random() < 0.35:
        text += by.choice(pieces.SIGNS) + _stage(by, depth)
    return text + (by.choice((";", "\n", " ", " # note", "; ")) if by.random() < 0.06 else "")


def _stage(by: random.Random, depth: int) -> str:
    chance = by.random()
    if chance < 0.05:
        return by.choice(("cd src", "cd src/lib", "cd ./empty", "cd dir-in", "cd nowhere", "cd a.txt", "cd 'src'", "cd .", "cd src/..", "cd -- src"))
    if chance < 0.1 and depth < 3:
        redirected = " " + by.choice(pieces.REDIRECTED) if by.random() < 0.3 else ""
        return by.choice(("({})", "( {} )", "( {}; )", "(\n{}\n)")).format(_script(by, depth + 1)) + redirected
    if chance < 0.13:
        return _document(by)
    parts = []
    if by.random() < 0.1:
        parts.append(by.choice(pieces.ASSIGNED))
    if by.random() < 0.04:
        parts.append(by.choice(pieces.REDIRECTED))
    parts.append(by.choice(pieces.PROGRAMS[:19] if by.random() < 0.6 else pieces.PROGRAMS))
    for _ in range(by.choice((0, 1, 1, 2, 2, 3, 5))):
        parts.append(_word(by))
    while by.random() < 0.22:
        parts.insert(by.randint(1, len(parts)), by.choice(pieces.REDIRECTED))
    return by.choice((" ", " ", " ", " ", "  ", "\t", " \\\n ")).join(parts)


def _word(by: random.Random) -> str:
    chance = by.random()
    if chance < 0.4:
        return by.choice(pieces.PLAIN)
    if chance < 0.55:
        return by.choice(pieces.QUOTED)
    if chance < 0.62:
        return by.choice(pieces.ESCAPED)
    if chance < 0.84:
        return by.choice(pieces.PATTERNS)
    kinds = (pieces.PLAIN, pieces.QUOTED, pieces.ESCAPED, pieces.PATTERNS)
    return "".join(by.choice(by.choice(kinds)) for _ in range(by.randint(2, 4)))


def _document(by: random.Random) -> str:
    last = by.choice(("EOF", "E", "'EOF'", '"EOF"', "\\EOF", "E1", "'E'"))
    lines = [by.choice(("text", "", "a b", "$x", "$(ls)", "`ls`", "it's", '"', "\\", "EOF x", " EOF", "\tEOF", "cost 5$", "*", "E\\")) for _ in range(3)]
    behind = by.choice(("", "", " | cat", " > out.txt", " && ls", " -n", " ; ls a.txt", "\t", " # note", " 'a'", " <<B\nb\nB"))
    name = last.strip("'\"\\")
    end = by.choice(("\n", "\n", "", "\nls\n", "\n\n", " \n", "\ncat a.txt", ";ls\n"))
    return f"cat <<{by.choice(('', ' ', '-'))}{last}{behind}\n" + "\n".join(lines[: by.randint(0, 3)] + [name]) + end


def _near(by: random.Random, corpus: Sequence[str]) -> str:
    text = _script(by, 0)
    for _ in range(by.choice((1, 1, 1, 2, 3))):
        piece = by.choice(by.choice((pieces.NEAR, pieces.NEAR, pieces.STRANGE)))
        blank = by.choice(("", " "))
        places = [0, len(text), by.randint(0, len(text)), *(place for place, char in enumerate(text) if char in " ;|&\n")]
        place = by.choice(places)
        text = text[:place] + blank + piece + blank + text[place:]
    return text


def _leaving(by: random.Random, corpus: Sequence[str]) -> str:
    piece = by.choice(pieces.LEAVING)
    begin = by.choice(("", "cd src && ", "cd dir-in; ", "true; ", "ls | ", "(", "LANG=C ")) if by.random() < 0.3 else ""
    program = "" if piece.startswith(("cd", "(", "HOME", "CDPATH")) else by.choice(("cat", "ls", "grep x", "./tool", "git -C")) + " "
    end = by.choice(("", "; ls *", " && cat < a.txt", " | cat", " > out.txt", " " + by.choice(pieces.LEAVING), ")")) if by.random() < 0.3 else ""
    return begin + program + piece + end + (")" if begin == "(" else "")


def _mutated(by: random.Random, corpus: Sequence[str]) -> str:
    text = by.choice(corpus)[:2000]
    for _ in range(by.choice((0, 1, 1, 2, 3, 6))):
        place = by.randint(0, len(text))
        match by.randint(0, 5):
            case 0:
                text = text[:place] + text[place + by.randint(1, 4) :]
            case 1:
                text = text[:place] + by.choice(by.choice((pieces.NEAR, pieces.QUOTED, pieces.ESCAPED, pieces.PATTERNS))) + text[place:]
            case 2:
                text = text[:place] + by.choice(pieces.ASCII) + text[place:]
            case 3:
                text = text[:place] + by.choice(pieces.EXOTIC) + text[place + 1 :]
            case 4:
                other = by.choice(corpus)[:2000]
                text = text[:place] + other[by.randint(0, len(other)) :]
            case _:
                end = by.randint(place, len(text))
                text = text[:end] + text[place:end] + text[end:]
    return text


def _noise(by: random.Random, corpus: Sequence[str]) -> str:
    length = by.choice((1, 2, 3, 5, 8, 13, 30, 80))
    match by.randint(0, 4):
        case 0:
            return bytes(by.randrange(256) for _ in range(length)).decode("utf-8", "surrogateescape")
        case 1:
            return "".join(by.choice(pieces.ASCII) for _ in range(length))
        case 2:
            return "ls " + "".join(by.choice(pieces.ASCII + pieces.EXOTIC) for _ in range(length))
        case 3:
            return "".join(chr(by.choice((by.randrange(256), by.randrange(0x3000), by.randrange(0x110000)))) for _ in range(length))
        case _:
            kinds = (pieces.NEAR, pieces.STRANGE, pieces.QUOTED, pieces.PATTERNS, pieces.REDIRECTED, pieces.ASSIGNED, pieces.SIGNS)
            return by.choice(("", "ls ")) + "".join(by.choice(by.choice(kinds)) for _ in range(min(length, 9)))


def _joined(by: random.Random, corpus: Sequence[str]) -> str:
    makers = (_honest, _near, _leaving, _mutated, _noise)
    return by.choice(pieces.SIGNS).join(by.choice(makers)(by, corpus) for _ in range(by.randint(2, 3)))


def _long(by: random.Random, corpus: Sequence[str]) -> str:
    piece, length = by.choice(pieces.HOSTILE), by.choice((500, 5_000, 20_000, 60_000, 70_000))
    middle = piece * (length // len(piece))
    return by.choice(("", "ls ", "ls '", 'ls "', "cat <<E\n", "LANG=", "ls > ", "ls [")) + middle + by.choice(("", "'", '"', "\nE\n", " b", "]"))


_MAKERS: Final = dict(zip(KINDS, (_honest, _near, _leaving, _mutated, _noise, _joined, _long), strict=True))
