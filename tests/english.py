"""
The English of this project, as far as a program can judge it: python -m tests.english [--words N] [PATH...]

A sentence has at most 25 words; 35 are the bound that the tests hold. A semicolon and a colon end none. `BANNED` lists constructions that
a reader has to decode. Pages, docstrings, messages, help texts and comments of policies are read.
"""

import argparse
import ast
import re
import sys

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple


ROOT: Final = Path(__file__).resolve().parents[1]
RULE, BOUND = 25, 35
BANNED: Final[dict[str, str]] = {
    r"^(?!What (is|are|was|were|does|do|did|has|have|can|may|must|will|should)\b[^.]*\?)What (?!\w+ \w+s? when\b)[^?]*[.]$": (
        "a sentence begins with its subject, a noun, not with `What`"
    ),
    r"^(?-i:Where|How) [^?]*[.]$": "a sentence begins with its subject, or with `If`, not with `Where` or `How`",
    r"^None (of|but|that|where)\b": "name the thing: `No guard ...`, not `None of`",
    r"^(?-i:Of) (?!\d|`)": "subject first: `The first of two ...`, `If two ...`, not `Of two ... the first`",
    r"^(?-i:Those|That) (of|that|whose|which|in|with)\b": "name the thing, not `Those of`",
    r"\b(for|of|by|to|from) who\b": "name the person or the thing",
    r"\bnothing where\b": "`Returns None if ...`",
    r"\b(None|True|False|empty|[A-Z]\w*Error|Missing\w+|Unfit) where\b": "`if`, not `where`, for a condition",
    r"\b(only|also|even) where\b|\bwhere (nothing|nobody|none|something|somebody)\b": "`if`, not `where`, for a condition",
    r"\bwhere (it|they|there|that|one|no|a|an|this) (is|are|was|were|has|have|lacks|cannot|can|does|do)\b": (
        "`if`, not `where`, for a condition"
    ),
    r"\bwhoever\b|\bwhatever\b(?! (it|they))|\bwhosoever\b": "name the person or the thing",
    r"\bbe it\b|\blest\b|\bthereof\b|\bwherein\b|\bthereby\b|\bhitherto\b": "a word that nobody says",
    r"\bis to be had\b|\bto be had\b|\bis had\b": "`is there`, `can be installed`",
    r"\bas such\b|\bsuch (a|an|is|as it is)\b": "name the thing",
    r"\bthe former\b|\bthe latter\b": "name the thing again",
    r"\bcome to (nothing|naught)\b|\bfor ever after\b": "a figure of speech",
    r"\bnot un\w+": "say it without two negations",
}
"""Constructions that have to be decoded, and what to write."""

_FENCE: Final = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.DOTALL | re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?])[\"')`*_]*\s+(?=[\"'(`*_\[]*[A-Z0-9`]|\*[a-z]\w*\*)")
_ABBREVIATED: Final = re.compile(r"\b(e\.g|i\.e|vs|etc|cf|No|Fig)\.$")
_CODE: Final = re.compile(r"`[^`]*`")
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


class Sentence(NamedTuple):
    """
    One sentence, and where it stands.
    """

    path: Path
    line: int
    text: str

    @property
    def words(self) -> int:
        """
        Returns how many words it has. Code in backticks is one.
        """
        return len(re.findall(r"[^\s]*\w[^\s]*", _CODE.sub("code", self.text)))

    def faults(self, words: int) -> list[str]:
        """
        Returns why it has to be written anew: more than *words*, or what `BANNED` names.
        """
        plain = _CODE.sub("`code`", self.text)
        said = [f"{self.words} words, at most {words}"] if self.words > words else []
        return said + [why for pattern, why in BANNED.items() if re.search(pattern, plain, re.IGNORECASE)]


def split(text: str) -> Iterator[str]:
    """
    Returns the sentences of a paragraph.
    """
    held = ""
    for part in _END.split(" ".join(text.split())):
        held = f"{held} {part}".strip()
        if held and not _ABBREVIATED.search(held):
            yield held
            held = ""
    if held:
        yield held


def of_page(path: Path) -> Iterator[Sentence]:
    """
    Returns the sentences of a Markdown page: paragraphs, items and quotations, without code, tables and headings.
    """
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    block: list[str] = []
    begun = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("    ") and not block and not re.match(r"\s+([*+-]|\d+\.)\s", line):
            continue  # indented code
        stripped = line.strip().lstrip("> ")
        item = re.match(r"([*+-]|\d+\.)\s+", stripped)
        if not stripped or item or stripped.startswith(("#", "|", "<", "===", "---")):
            yield from (Sentence(path, begun, said) for said in split(_LINK.sub(r"\1", " ".join(block))))
            block = []
        if stripped and not stripped.startswith(("#", "|", "<", "===", "---")):
            begun = begun if block else number
            block.append(stripped[item.end() :] if item else stripped)


def of_tables(path: Path) -> Iterator[Sentence]:
    """
    Returns the sentences in the cells of the tables of a page. A cell that only quotes in backticks is none.
    """
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip("| ")):
                yield from (
                    Sentence(path, number, said) for said in split(_LINK.sub(r"\1", re.sub(r"``.*?``", "`code`", cell)))
                )


def of_policy(path: Path) -> Iterator[Sentence]:
    """
    Returns the sentences in the comments of a policy file.
    """
    block: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        alone = re.match(r"\s*#\s?(?!yaml-language-server)(.*)", line)
        beside = None if alone else re.search(r"\s#\s(.*)$", line)
        if alone:
            block.append(alone[1])
            continue
        for told in (" ".join(block), beside[1] if beside else ""):
            yield from (Sentence(path, number, said) for said in split(told))
        block = []


def of_module(path: Path) -> Iterator[Sentence]:
    """
    Returns the sentences of a module: docstrings, and the texts of errors, envelopes and help.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstring(path, node)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            yield from _texts(path, node.exc)
        elif isinstance(node, ast.keyword) and node.arg in {"help", "hint", "message", "epilog", "description"}:
            yield from _texts(path, node.value)


def _docstring(
    path: Path, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Sentence]:
    said = ast.get_docstring(node)
    if not said or not node.body:
        return
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[*-] )", said):
        # An indented paragraph is code, or a table.
        if not re.match(r"\s{2,}", paragraph):
            yield from (Sentence(path, node.body[0].lineno, each) for each in split(paragraph))


def _texts(path: Path, node: ast.AST) -> Iterator[Sentence]:
    texts = [
        "".join(part.value if isinstance(part, ast.Constant) else "`x`" for part in each.values)  # type: ignore[misc]
        for each in ast.walk(node)
        if isinstance(each, ast.JoinedStr)
    ]
    inside = {id(part) for each in ast.walk(node) if isinstance(each, ast.JoinedStr) for part in ast.walk(each)}
    texts += [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inside
    ]
    line = getattr(node, "lineno", 0)
    yield from (Sentence(path, line, said) for text in texts if " " in text for said in split(text))


def pages() -> list[Path]:
    """
    Returns all pages that users read.
    """
    return sorted([*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def modules() -> list[Path]:
    """
    Returns all modules of the package.
    """
    return sorted((ROOT / "guardrails").rglob("*.py"))


def policies() -> list[Path]:
    """
    Returns all shipped policies.
    """
    return sorted((ROOT / "policies").glob("*.yaml"))


def read(path: Path) -> Iterator[Sentence]:
    """
    Returns the sentences of a page, a module or a policy.
    """
    if path.suffix == ".md":
        yield from of_page(path)
        yield from of_tables(path)
    else:
        yield from of_policy(path) if path.suffix == ".yaml" else of_module(path)


def main(arguments: Sequence[str]) -> int:
    """
    Print each sentence that has to be written anew. Exit code 1 if there is one.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.english", description="Find sentences that must be decoded.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders (default: all)")
    parser.add_argument("--words", type=int, default=RULE, help="words of a sentence at most (%(default)s)")
    given = parser.parse_args(arguments)
    files = [
        f
        for p in given.paths
        for f in ([p] if p.is_file() else [*p.rglob("*.md"), *p.rglob("*.py"), *p.rglob("*.yaml")])
    ]
    found = 0
    for path in files or [*pages(), *modules(), *policies()]:
        for sentence in read(path):
            for why in sentence.faults(given.words):
                found += 1
                shown = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
                print(f"{shown}:{sentence.line}: {why}\n    {sentence.text}")
    print(f"{found} sentence{'' if found == 1 else 's'} to write anew")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
