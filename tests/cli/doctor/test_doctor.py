"""
`guardrails doctor`: which sandboxes there are, in text and as data, and its exit code.
"""

import json
import sys

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import CANNOT, choose


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_the_sandbox_is_shown_with_what_it_cannot_do_or_what_blocks_it() -> None:
    try:
        blocked = None if choose("auto") == "bwrap" else ""
    except SandboxUnavailable as error:
        blocked = str(error)
    data, text = doctor("--json"), doctor()
    told = json.loads(data.stdout)
    assert told["auto"] == ("bwrap" if blocked is None else None)
    cannot = list(CANNOT) if blocked is None else []
    assert told["sandboxes"] == [{"name": "bwrap", "works": not blocked, "blocked": blocked, "cannot": cannot}]
    assert data.exit_code == text.exit_code == (0 if blocked is None else 1)
    words = " ".join(text.stdout.split())
    assert all(sentence in words for sentence in (*cannot, *filter(None, [blocked])))


def test_on_another_system_it_says_so_how_to_go_on_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    shown = doctor()
    assert shown.exit_code == 1
    assert "does not work: bwrap: it needs Linux, and this is Windows" in shown.stdout
    assert "`guardrails run --sandbox none`" in " ".join(shown.stdout.split())
    assert json.loads(doctor("--json").stdout)["auto"] is None
