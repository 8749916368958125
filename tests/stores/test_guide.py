"""
The guide to stores, run as it stands.
"""

import re

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from tests.stores.postgres_server import PROGRAMS
from tests.stores.postgres_server import shared as shared_postgres
from tests.stores.redis_server import PROGRAM, shared


GUIDE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_code_runs_and_the_file_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    absent = [name for name, there in (("RedisStore", PROGRAM), ("PostgresStore", PROGRAMS)) if not there]
    # The last one is a program of its own: `tests/system/docs/test_daemons.py`.
    code = "\n".join(block for block in blocks("python")[:-1] if not any(name in block for name in absent))
    if PROGRAM:
        code = code.replace("redis://127.0.0.1:6379/0", shared().url)
    if PROGRAMS:
        code = code.replace("postgresql://agent:PASSWORD@127.0.0.1/app", shared_postgres().url)
    exec(code, names)
    try:
        [text] = blocks("yaml")
        (tmp_path / "policy.yaml").write_text(text)
        scopes = {name: chain.guards for name, chain in Policy.load("./policy.yaml").scopes.items()}
        assert scopes == {name: chain.guards for name, chain in names["policy"].scopes.items()}
        assert names["session"].ledger.progress == {
            "calls_used": 0,
            "calls_left": 20,
            "cost_left_usd": 1.0,
            "tokens_left": 5_000_000,
        }
        assert len(names["store"]) == 4
    finally:
        names["store"].close()
