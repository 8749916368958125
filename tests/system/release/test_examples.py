"""
The programs in `examples/` do what their page says.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.stores.servers import shared, shared_postgres

from .examples import FOLDER, PRINTED, printed, ran


NEEDS = {"agent_with_a_budget": "openai", "train_a_week": "duckdb", "refund_agent": "cel_expr_python"}


def test_the_page_shows_what_every_program_prints() -> None:
    assert {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("test_")} == set(PRINTED)


# `tests/hosts/test_langchain.py` runs the other one, where its host is installed.
@pytest.mark.parametrize("name", sorted(PRINTED.keys() - {"langchain_agent"}))
def test_a_program_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    assert printed(name, tmp_path) == PRINTED[name]


@pytest.mark.parametrize("server", [shared, shared_postgres])
def test_refund_agents_share_their_limit_on_a_server(server: Any, tmp_path: Path) -> None:
    pytest.importorskip("cel_expr_python")
    assert ran("refund_agent", tmp_path, server().url).stdout == PRINTED["refund_agent"]
