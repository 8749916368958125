"""
`guardrails doctor`: which sandboxes there are, in text and as data, and its exit code.
"""

import json
import sys

import pytest

from typer.testing import CliRunner, Result

from guardrails.cli import app
from guardrails.processes.sandbox import offers


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_each_sandbox_is_shown_with_what_it_cannot_do_or_what_blocks_it() -> None:
    data, text = doctor("--json"), doctor()
    told = json.loads(data.stdout)
    assert [one["name"] for one in told["sandboxes"]] == ["bwrap", "landlock"]
    assert told["auto"] == next((one["name"] for one in told["sandboxes"] if one["works"]), None)
    assert data.exit_code == text.exit_code == (1 if told["auto"] is None else 0)
    words = " ".join(text.stdout.split())
    for one, offer in zip(told["sandboxes"], offers(), strict=True):
        assert one["works"] is (one["blocked"] is None)
        assert (one["blocked"], tuple(one["cannot"])) == (offer.blocked, offer.cannot)
        for sentence in (*one["cannot"], *filter(None, [one["blocked"]])):
            assert sentence in words


def test_on_another_system_it_says_so_how_to_go_on_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    shown = doctor()
    assert shown.exit_code == 1
    assert "bwrap: does not work: it needs Linux, and this is Windows" in shown.stdout
    assert "landlock: does not work: " in shown.stdout
    assert "`guardrails run --sandbox none`" in " ".join(shown.stdout.split())
    assert json.loads(doctor("--json").stdout)["auto"] is None
