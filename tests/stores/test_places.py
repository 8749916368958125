"""
Stores that command lines name, and the guide to stores, run as it stands.
"""

import re
import sys

from pathlib import Path
from typing import Any

import pytest

from guardrails import Policy
from guardrails.core.values.errors import MissingExtra
from guardrails.errors import StoreError
from guardrails.hooks.options import Options as HookOptions
from guardrails.stores.places import shown_place, store_at, whole_place
from guardrails.stores.redis import RedisStore
from guardrails.stores.sqlite import SqliteStore
from tests.stores.servers import POSTGRES, REDIS, needed, shared, shared_postgres
from tests.tables import table


GUIDE = (Path(__file__).parents[2] / "docs" / "stores.md").read_text()


def test_a_path_is_a_file_of_sqlite_in_every_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with store_at(whole_place("state.db")) as store:
        assert isinstance(store, SqliteStore)
        assert store.path == str(tmp_path / "state.db")


@table(
    ("place", "shown"),
    [
        ("redis://u:hidden@h:1/0", "redis://h:1/0"),
        ("rediss://:p@h@h:1/0?password=hidden", "rediss://h:1/0"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("state@home?.db", "state@home?.db"),
    ],
)
def test_a_place_is_shown_without_what_is_secret(place: str, shown: str) -> None:
    assert shown_place(place) == shown
    assert "hidden" not in repr(HookOptions(store=place))


def test_without_its_package_a_store_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.exceptions", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "toolcall-guardrails[redis]"')):
        RedisStore("redis://127.0.0.1:1/0")


URLS = ("http://h:1/0", "mysql://h/0", "redis://h/name", "redis://h/1/2", "redis://:hidden/x@h:1/0", "redis://h:port")


@needed
def test_what_is_no_url_of_a_server_is_refused_without_its_password() -> None:
    for url in (*URLS, "redis://u:hid@den@[h", "rediss://h/-1"):
        with pytest.raises(StoreError, match="no URL of a server") as error:
            store_at(url)
        assert "hid" not in str(error.value)
    for given in (5, None, b"redis://h:1/0"):
        with pytest.raises(StoreError, match="needs a URL"):
            RedisStore(given)


@pytest.mark.system
def test_the_code_of_the_guide_runs_and_its_file_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    absent = [name for name, there in (("RedisStore", REDIS), ("PostgresStore", POSTGRES)) if not there]
    blocks, [text] = (re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) for language in ("python", "yaml"))
    # The last one is a program of its own: `tests/system/docs/test_daemons.py`.
    code = "\n".join(block for block in blocks[:-1] if not any(name in block for name in absent))
    if REDIS:
        code = code.replace("redis://127.0.0.1:6379/0", shared().url)
    if POSTGRES:
        code = code.replace("postgresql://agent:PASSWORD@127.0.0.1/app", shared_postgres().url)
    exec(code, names)
    with names["store"]:
        (tmp_path / "policy.yaml").write_text(text)
        scopes = {name: chain.guards for name, chain in Policy.load("./policy.yaml").scopes.items()}
        assert scopes == {name: chain.guards for name, chain in names["policy"].scopes.items()}
        progress = {"calls_used": 0, "calls_left": 20, "cost_left_usd": 1.0, "tokens_left": 5_000_000}
        assert names["session"].ledger.progress == progress
        assert len(names["store"]) == 4
