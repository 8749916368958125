"""
The CLIs that are installed, each test with each of them. `python -m tests.system.clis` installs what this needs.
"""

import os

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from .clients.base import Client
from .clients.claude import Claude
from .clients.codex import Codex
from .clients.gemini import Gemini
from .model import Model


CLIENTS: Final[dict[str, type[Client]]] = {kind.name: kind for kind in (Claude, Codex, Gemini)}
PACKAGES: Final = os.environ.get("GUARDRAILS_CLIS", "")
"""The folder of the packages of npm."""
ASKED: Final = os.environ.get("GUARDRAILS_CLIS_ASKED", "codex gemini").split()


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.system) for name in CLIENTS])
def cli(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Client]:
    name = request.param
    if not PACKAGES:
        pytest.skip("python -m tests.system.clis installs what this needs")
    if name not in ASKED:
        pytest.skip(f"{name} was not asked for: python -m tests.system.clis {name}")
    kind = CLIENTS[name]
    reason = kind.cannot.get(request.function.__name__)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason))
    with Model() as model:
        yield kind(tmp_path, Path(PACKAGES), model)
