"""
A home for hook processes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.processes import Home, living


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with living(tmp_path) as made:
        # Byte code is kept for all of these tests, as where the library is installed.
        made.environment["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.getbasetemp() / "pycache")
        made.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield made
