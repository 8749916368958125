"""
`guardrails doctor`: which sandboxes there are, in text and as data, and its exit code.
"""

import json
import sys

from functools import partial
from importlib.metadata import version

import pytest

from guardrails.cli.doctor import OURS, lacking
from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.sandbox import bubblewrap
from tests.cli.command import guardrails


doctor = partial(guardrails, "doctor")


def test_the_sandbox_is_shown_or_what_blocks_it() -> None:
    try:
        blocked = None if bubblewrap() else ""
    except SandboxUnavailable as error:
        blocked = str(error)
    data, text = doctor("--json"), doctor()
    told = json.loads(data.stdout)
    assert told["auto"] == ("bwrap" if blocked is None else None)
    assert told["sandboxes"] == [{"name": "bwrap", "works": not blocked, "blocked": blocked}]
    assert data.exit_code == text.exit_code == (0 if blocked is None else 1)
    assert (blocked or "") in " ".join(text.stdout.split())


def test_on_another_system_it_says_so_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    bubblewrap.cache_clear()
    shown = doctor()
    assert "bwrap: it needs Linux, and this is win32" in " ".join(shown.stdout.split())
    assert json.loads(doctor("--json").stdout)["auto"] is None


def test_an_extra_lacks_what_is_not_installed() -> None:
    lines = ["nosuch-package>=1", "nosuch-other[more]<2,>=1; extra == 'redis'", "ruff>=1; extra == 'dev'"]
    lines += [f"pytest<{version('pytest')}; extra == 'mcp'", f"{OURS}[train]; extra == 'spark'"]
    assert lacking(lines) == {"mcp": [], "redis": ["nosuch-other"]}


def test_an_installation_of_another_version_than_its_files_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrails.cli.doctor.version", lambda _: "0.0.1")
    found = json.loads(doctor("--json").stdout)
    assert [one["next"].split()[0] for one in found["problems"]] == ["pip"]
