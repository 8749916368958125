"""
The CLIs that are installed, each test with each of them. `python -m tests.system.clis` installs what this needs.
"""

import os

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .clients import Claude, Cli, Codex, Gemini
from .model import Model


PACKAGES: Final = os.environ.get("GUARDRAILS_CLIS", "")
"""The folder of the packages of npm."""
ASKED: Final = os.environ.get("GUARDRAILS_CLIS_ASKED", "codex gemini").split()


@pytest.fixture(params=[Claude, Codex, Gemini], ids=lambda kind: kind.name)
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    kind = request.param
    if not PACKAGES or kind.name not in ASKED:
        pytest.skip(f"python -m tests.system.clis {kind.name} installs what this needs")
    reason = kind.cannot.get(request.function.__name__)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason))
    with Model() as model:
        yield kind(tmp_path, Path(PACKAGES), model)
