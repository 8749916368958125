"""
The English of pages, docstrings and messages, as `tests.english` judges it.
"""

from pathlib import Path

import pytest

from docs.site.staging import stage
from tests.english import (
    BOUND,
    ROOT,
    Sentence,
    main,
    modules,
    of_module,
    of_page,
    of_policy,
    of_tables,
    pages,
    policies,
    read,
    split,
)


def rooms() -> dict[str, list[Path]]:
    """
    The modules by their folder below the package.
    """
    found: dict[str, list[Path]] = {}
    for path in modules():
        found.setdefault(path.relative_to(ROOT).parts[1], []).append(path)
    return found


@pytest.mark.parametrize("page", [*pages(), *policies()], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_has_no_sentence_that_must_be_decoded(page: Path) -> None:
    assert [(said.line, said.text, why) for said in read(page) for why in said.faults(BOUND)] == []


@pytest.mark.parametrize("room", rooms())
def test_a_room_has_no_docstring_or_message_that_must_be_decoded(room: str) -> None:
    told = [
        (f"{path}:{said.line}", said.text, why)
        for path in rooms()[room]
        for said in read(path)
        for why in said.faults(BOUND)
    ]
    assert told == []


def test_no_page_that_the_site_makes_of_docstrings_schema_and_codes_must_be_decoded(tmp_path: Path) -> None:
    stage(tmp_path / "docs")
    made = sorted((tmp_path / "docs/reference").glob("*.md"))
    assert len(made) > 5
    assert [
        (page.name, said.line, said.text, why) for page in made for said in read(page) for why in said.faults(BOUND)
    ] == []


def faults(text: str, words: int = BOUND) -> list[str]:
    return Sentence(ROOT, 1, text).faults(words)


@pytest.mark.parametrize(
    "text",
    [
        "What is committed is recorded.",
        "None of the guards objects.",
        "Returns None where there is no model.",
        "Use it where it is installed.",
        "A model is replaced only where the new one is better.",
        "`ok` where nothing is said.",
        "Whoever puts one more waits.",
        "Where the file is kept.",
        "How many calls ran.",
        "It is to be had from the registry.",
        "Such a session is over.",
        "Of two that claim it the first reads it.",
        "Those of a server go last.",
        "It uses the budget of who asks it.",
        "The latter wins.",
        "one " * 36,
    ],
)
def test_a_sentence_that_must_be_decoded_is_found(text: str) -> None:
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "Returns None if there is no model.",
        "The folder where records are written is made.",
        "What is a guard?",
        "How many calls ran?",
        "where it began, a line goes on.",
        "`What if None where it is` is code.",
        "one " * 35,
    ],
)
def test_a_plain_sentence_is_left_alone(text: str) -> None:
    assert faults(text) == []


def test_a_semicolon_and_a_colon_end_no_sentence() -> None:
    assert len(list(split("It runs; then it ends: that is all. It says so."))) == 2


def test_code_counts_as_one_word() -> None:
    assert Sentence(ROOT, 1, "Run `guardrails policy check FILE` now.").words == 3


def test_a_page_is_read_without_its_code_tables_and_headings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# What it is\n\nOne. Two\nends.\n\n    What code = 1.\n    Where it ends.\n```sh\nWhat it runs.\n```\n\n| What it is. |\n\n* An item\n  goes on.\n* [A link](x.md).\n"
    )
    assert [(said.line, said.text) for said in of_page(page)] == [
        (3, "One."),
        (3, "Two ends."),
        (14, "An item goes on."),
        (16, "A link."),
    ]


def test_the_cells_of_tables_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "One.\n\n| key | says |\n|---|---|\n| `a\\|b` | Two. [Three](x.md) ends. |\n\n```\n| no table |\n```\n"
    )
    assert [(said.line, said.text) for said in of_tables(page) if said.text[0].isupper()] == [
        (5, "Two."),
        (5, "Three ends."),
    ]


def test_the_comments_of_a_policy_are_read(tmp_path: Path) -> None:
    policy = tmp_path / "own.yaml"
    policy.write_text("# One goes\n# on. Two.\nversion: 1   # three\n")
    assert [said.text for said in of_policy(policy)] == ["One goes on.", "Two.", "three"]


def test_an_empty_line_of_a_quotation_ends_its_paragraph(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("> tools wait\n> here\n>\n> after that they run\n")
    assert [(said.line, said.text) for said in of_page(page)] == [(1, "tools wait here"), (4, "after that they run")]


def test_docstrings_and_messages_are_read(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""\nA module.\n"""\n\ndef ask(x):\n    """\n    Ask it.\n    """\n    raise ValueError(f"no answer from {x}")\n\n'
        'def _own():\n    """\n    The own part.\n    """\n\nmade(help="what to ask for")\n'
    )
    assert sorted(said.text for said in of_module(module)) == [
        "A module.",
        "Ask it.",
        "The own part.",
        "no answer from `x`",
        "what to ask for",
    ]


def test_the_command_names_file_line_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("Fine.\n\nWhoever reads it stops.\n")
    assert main([str(page)]) == 1
    assert f"{page}:3: name the person or the thing" in capsys.readouterr().out
    page.write_text("Fine.\n")
    assert main([str(page)]) == 0
