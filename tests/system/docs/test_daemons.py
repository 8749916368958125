"""
The daemon of `docs/stores.md` in several processes, killed and started again.
"""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys

from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from guardrails.testing.scripted_openai import Calls, Delayed, Reply, ScriptedOpenAI, Text, call


pytestmark = pytest.mark.system


ROOT = Path(__file__).parents[3]
WORK = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "stores.md").read_text(), re.DOTALL)[-1]
"""The program of the page: the work on one item."""
QUEUE = """
import sqlite3

queue = sqlite3.connect("queue.db", timeout=30, isolation_level=None)
queue.execute(
    "CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'open', attempt INTEGER NOT NULL DEFAULT 0)"
)
TAKE = "UPDATE items SET attempt = attempt + 1 WHERE id = (SELECT id FROM items WHERE state = 'open') RETURNING id, attempt"
with OpenAI() as client:
    while (taken := queue.execute(TAKE).fetchone()) is not None:
        state, _ = work(client, *taken)
        queue.execute("UPDATE items SET state = ? WHERE id = ? AND attempt = ?", (state, *taken))
"""
"""A daemon around it that gives up an item with its process, so the next process takes it."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "worker.py").write_text(WORK + QUEUE)
    return tmp_path


def worker(folder: Path, server: ScriptedOpenAI) -> "subprocess.Popen[str]":
    own = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
    return subprocess.Popen(
        [sys.executable, "worker.py"],
        cwd=folder,
        env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )


def put(folder: Path, *items: str) -> None:
    with closing(sqlite3.connect(folder / "queue.db")) as queue, queue:
        queue.executemany("INSERT INTO items (id) VALUES (?)", [(item,) for item in items])


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "queue.db")) as queue:
        return queue.execute("SELECT id, state, attempt FROM items ORDER BY id").fetchall()


def ended(process: "subprocess.Popen[str]") -> int:
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return process.returncode


def ran(server: ScriptedOpenAI) -> int:
    """
    How many calls succeeded, by what the models read.
    """
    answers = {
        message["tool_call_id"]: json.loads(message["content"])["status"]
        for body in server.requests
        for message in body["messages"]
        if message["role"] == "tool"
    }
    return [*answers.values()].count("success")


def test_a_killed_workers_calls_count_for_the_next_one(folder: Path) -> None:
    def model(body: dict[str, Any], n: int) -> Reply:
        if body.get("tool_choice") == "none":
            return Text("I stopped.")
        made = Calls(call("look_up", {"order": "o-1", "page": n}, id=f"c{n}"))
        return Delayed(made, 60) if n == 2 else made

    with ScriptedOpenAI(model) as server:
        ended(worker(folder, server))
        put(folder, "o-1")
        first = worker(folder, server)
        while len(server.requests) < 3:
            with suppress(subprocess.TimeoutExpired):
                first.wait(0.01)
                break
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert rows(folder) == [("o-1", "open", 1)]
        ended(worker(folder, server))
        assert ran(server) == 5
        assert rows(folder) == [("o-1", "given up", 2)]
        asked = len(server.requests)

        # Whoever puts it back finds it used up, and asks no model.
        with closing(sqlite3.connect(folder / "queue.db")) as queue, queue:
            queue.execute("UPDATE items SET state = 'open'")
        ended(worker(folder, server))
        assert (rows(folder), len(server.requests)) == ([("o-1", "given up", 3)], asked)
