"""
Stores that command lines name.
"""

import json

from pathlib import Path

import pytest

from guardrails import StoreError
from guardrails.hooks.options import Options as HookOptions
from guardrails.hooks.respond import respond
from guardrails.mcp.command import options_of
from guardrails.mcp.proxy import Shared
from guardrails.stores.places import shown_place, store_at, whole_place, write_whole
from guardrails.stores.redis import RedisStore
from guardrails.stores.sqlite import SqliteStore
from tests.stores.redis_server import Server, needed
from tests.tables import table


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


@needed
@table("place", ["http://h:1/0", "mysql://h/0", "redis://h/name"])
def test_another_url_is_refused(place: str) -> None:
    with pytest.raises(StoreError, match="no URL of a server"):
        store_at(place)


@needed
def test_a_hook_and_a_proxy_keep_their_sessions_in_a_server_if_their_store_is_a_url() -> None:
    server = Server()
    try:
        options = HookOptions(client="claude", store=server.url)
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": "s1",
            "tool_name": "Read",
            "tool_input": {"file_path": "/a"},
        }
        respond(json.dumps({**event, "tool_use_id": "t1", "cwd": "/"}).encode(), options)
        shared = Shared(options_of([f"--store={server.url}", "--", "true"]))
        assert isinstance(shared.store, RedisStore)
        shared.store.close()
        with store_at(server.url) as store:
            assert [one.key for one in store.entries("s1")] == ["s1"]
    finally:
        server.remove()


@table(
    ("there", "mode"),
    [("a file", 0o640), ("a link", 0o600), ("a dead link", 0o600), ("nothing", 0o600)],
)
def test_a_file_that_is_put_in_the_place_of_another_has_its_mode(there: str, mode: int, tmp_path: Path) -> None:
    place, other = tmp_path / there, tmp_path / f"behind {there}"
    if there == "a file":
        place.touch()
        place.chmod(0o640)
    elif there != "nothing":
        place.symlink_to(other)
    if there == "a link":
        other.write_text("other")
    write_whole(place, b"new", 0o600)
    assert (place.read_text(), place.lstat().st_mode & 0o777) == ("new", mode)
    assert not other.exists() or other.read_text() == "other"
