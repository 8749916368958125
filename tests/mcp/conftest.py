"""
Servers that the tests of MCP call.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .far import Far


@pytest.fixture
def far() -> Iterator[Far]:
    with Far() as server:
        yield server


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[str], str]:
    """
    Writes the file of a policy that says something, and returns its path.
    """

    def write(said: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(f"version: 1\n{said}")
        return str(path)

    return write
