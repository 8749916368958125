"""
The programs in `examples/` do what their page says.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.stores.servers import shared, shared_postgres
from tests.tables import table

from .examples import FOLDER, PRINTED, printed, ran


NEEDS = {"agent_with_a_budget": "openai", "train_a_week": "duckdb", "refund_agent": "cel_expr_python"}
LACKING = {
    "agent_with_a_budget": "openai",
    "train_a_week": "train",
    "langchain_agent": "langchain",
    "refund_agent": "cel",
}
"""The extra that a program needs, by its name."""
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"openai", "duckdb", "langchain", "langchain_core", "cel_expr_python"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
"""A `sitecustomize` module, so that processes that a program starts find as little."""


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


@table("name", LACKING)
def test_a_program_whose_extra_is_not_installed_says_how_to_get_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING)
    done = ran(name, tmp_path, modules=str(tmp_path))
    assert done.returncode != 0
    assert f'pip install "toolcall-guardrails[{LACKING[name]}]"' in done.stderr
    assert "Traceback" not in done.stderr
