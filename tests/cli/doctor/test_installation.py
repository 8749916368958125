"""
`guardrails doctor` of packages, versions, a distribution of the same name, and stores.
"""

import json
import sqlite3

from importlib.metadata import version
from pathlib import Path

import pytest

from typer.testing import CliRunner, Result

from guardrails import Budget, Policy, SqliteStore
from guardrails.cli import app
from guardrails.cli.doctor import OURS, wanted_packages


def doctor(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)])


def test_packages_are_wanted_by_the_library_or_by_an_extra() -> None:
    found = wanted_packages(
        [
            "typer<1,>=0.15",
            "nosuch-package>=1",
            "nosuch-other>=1; extra == 'redis'",
            f"pytest<{version('pytest')}; extra == 'mcp'",
            f"{OURS}[train]; extra == 'spark'",
            "ruff>=1; extra == 'dev'",
        ]
    )
    assert {extra: [one["name"] for one in ones] for extra, ones in found.items()} == {
        "": ["typer", "nosuch-package"],
        "mcp": ["pytest"],
        "redis": ["nosuch-other"],
    }
    assert [one["installed"] for one in found[""]] == [version("typer"), None]


def test_the_extras_of_this_installation_are_shown() -> None:
    told = json.loads(doctor("--json").stdout)
    assert {one["name"] for one in told["extras"]}.isdisjoint({"dev", "docs", "test"})
    assert {"name": "typer", "installed": version("typer")}.items() <= next(
        one for one in told["packages"] if one["name"] == "typer"
    ).items()


def test_a_store_that_opens_is_counted_by_the_versions_of_its_states(tmp_path: Path) -> None:
    place = tmp_path / "state.db"
    policy = Policy([Budget(max_calls=9)])
    with SqliteStore(place) as store:
        for name in ("a", "b"):
            policy.session(name, store=store).call("t", {}, lambda *_: 1)
        kept = store.read("a")
    assert kept is not None
    told = json.loads(doctor(place, "--json").stdout)
    assert told["stores"] == [
        {
            "store": str(place),
            "opens": True,
            "states": 2,
            "kinds": {"session": 2},
            "versions": {str(kept.packed[0]): 2},
            "unreadable": 0,
            "problem": None,
            "next": None,
        }
    ]
    assert f"2 of version {kept.packed[0]}" in " ".join(doctor(place).stdout.split())


@pytest.mark.system
@pytest.mark.parametrize("kind", ["missing", "folder", "foreign", "newer", "url"])
def test_a_store_that_does_not_work_is_broken_with_the_next_step(kind: str, tmp_path: Path) -> None:
    place: object = tmp_path / "state.db"
    if kind == "folder":
        place = tmp_path
    elif kind == "foreign":
        (tmp_path / "state.db").write_text("no database at all, but text" * 100)
    elif kind == "newer":
        with SqliteStore(tmp_path / "state.db") as store:
            Policy([Budget(max_calls=9)]).session("a", store=store).call("t", {}, lambda *_: 1)
        with sqlite3.connect(tmp_path / "state.db") as database:
            database.execute("UPDATE states SET state = x'FE' || substr(state, 2)")
        database.close()
    elif kind == "url":
        place = "redis://user:secret@127.0.0.1:1/0"
    done = doctor(place, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert len(told["problems"]) == 1
    assert told["problems"][0]["next"]
    assert "secret" not in done.output
    shown = doctor(place)
    assert shown.exit_code == 1
    assert "broken:" in shown.stdout
    assert "next:" in shown.stdout
    assert "secret" not in shown.output


def test_nothing_is_made_where_no_store_is(tmp_path: Path) -> None:
    assert doctor(tmp_path / "state.db").exit_code == 1
    assert list(tmp_path.iterdir()) == []
