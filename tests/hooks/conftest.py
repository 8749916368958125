"""
A home for hook processes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.processes import Home, living


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with living(tmp_path) as made:
        yield made
