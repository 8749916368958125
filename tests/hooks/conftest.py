"""
A home for hook processes.
"""

from pathlib import Path

import pytest

from tests.hooks.processes import Home


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path)
    # Byte code is kept for all of these tests, as where the library is installed.
    made.environment["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.getbasetemp() / "pycache")
    made.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return made
