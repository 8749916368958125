import json

from pathlib import Path

from typer.testing import CliRunner

from guardrails.cli import app
from guardrails.cli.explain import explanations
from tests.tables import table


EXPLAINED = explanations()
GUARD = '''
from guardrails import Denial, Guard, guard

@guard
class Recipients(Guard):
    """
    Mail to few.
    """

    codes = {"recipients.limit": ("limit",)}
    limit: int = 3
'''


def explained(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["explain", *arguments], env={"COLUMNS": "100"})
    assert done.exit_code == code, done.output
    return done.output


def test_a_code_is_explained_whole() -> None:
    said = " ".join(explained("duplicates.evidence").split())
    for part in (
        "kind denial status duplicate_call_blocked",
        "The last two identical calls gave the same result",
        "settings duplicates.rule duplicates.window",
        "told This exact $tool call was already made",
        "retry Yes, once a call has run that may have changed something",
        "loosen tools: [{match: the_tool, repeats: allow}]",
        "off duplicates: {mode: off}",
        "docs/guards/repeats.md#duplicates",
    ):
        assert part in said


@table("code", EXPLAINED)
def test_whatever_can_be_met_is_explained_for_a_person_and_a_program(code: str) -> None:
    text, data = explained(code), json.loads(explained(code, "--json"))
    assert data["code"] == code
    assert {"means", "settings", "told", "retry", "loosen", "off", "docs", "kind", "status"} <= set(data)
    assert data["docs"] in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_code_of_a_scope_is_that_of_its_guard() -> None:
    data = json.loads(explained("tenant.budget.max_calls", "--json"))
    assert data["loosen"] == "scopes: {tenant: {budget: {max_calls: 2000}}}"
    assert data["settings"][0] == "scopes.tenant.budget.max_calls"
    assert "scope `tenant`" in data["means"]


def test_a_code_of_an_older_release_is_explained_by_its_new_name() -> None:
    assert json.loads(explained("budget.error", "--json"))["code"] == "call.error"


def test_without_a_code_all_are_listed() -> None:
    lines = {line.split()[0] for line in explained().splitlines() if line.strip()}
    assert set(EXPLAINED) <= lines
    assert [each["code"] for each in json.loads(explained("--json"))] == list(EXPLAINED)


def test_codes_of_guards_of_ones_own_are_explained_by_their_docstrings(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(GUARD)
    data = json.loads(explained("recipients.limit", "--guards", str(tmp_path / "own.py"), "--json"))
    assert (data["means"], data["off"], data["docs"]) == (
        "Mail to few.",
        "recipients: {mode: off}",
        "docs/extend.md",
    )
    listed = explained("--guards", str(tmp_path / "own.py"))
    assert "recipients.limit" in listed
