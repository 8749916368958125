"""
The daemon of `docs/stores.md` in several processes, killed and started again.
"""

import os
import sqlite3
import sys

from contextlib import closing
from pathlib import Path
from typing import Any

from guardrails.testing.scripted_openai import Calls, Delayed, Reply, ScriptedOpenAI, Text, call
from tests.children import child, ran, until
from tests.docs.pages import DOCS, ROOT, blocks


QUEUE = """
import sqlite3

queue = sqlite3.connect("queue.db", timeout=30, isolation_level=None)
TAKE = "UPDATE items SET attempt = attempt + 1 WHERE id = (SELECT id FROM items WHERE state = 'open') RETURNING id, attempt"
with OpenAI() as client:
    while (taken := queue.execute(TAKE).fetchone()) is not None:
        state, _ = work(client, *taken)
        queue.execute("UPDATE items SET state = ? WHERE id = ? AND attempt = ?", (state, *taken))
"""
"""A daemon around the program of the page, which gives up an item with its process, so the next process takes it."""
ITEMS = (
    "CREATE TABLE items (id TEXT PRIMARY KEY, state TEXT NOT NULL DEFAULT 'open', attempt INTEGER NOT NULL DEFAULT 0)"
)


def test_a_killed_workers_calls_count_for_the_next_one(tmp_path: Path) -> None:
    def model(body: dict[str, Any], n: int) -> Reply:
        if body.get("tool_choice") == "none":
            return Text("I stopped.")
        made = Calls(call("look_up", {"order": "o-1", "page": n}, id=f"c{n}"))
        return Delayed(made, 600) if n == 2 else made

    def after_another() -> tuple[Any, ...]:
        done = ran(sys.executable, "worker.py", cwd=tmp_path, env=own)
        assert done.returncode == 0, done.stderr
        return item()

    def item() -> tuple[Any, ...]:
        found: tuple[Any, ...] = queue.execute("SELECT state, attempt FROM items").fetchone()
        return found

    (tmp_path / "worker.py").write_text(blocks(DOCS / "stores.md", "python")[-1].text + QUEUE)
    connected = closing(sqlite3.connect(tmp_path / "queue.db", isolation_level=None))
    with connected as queue, ScriptedOpenAI(model) as server:
        queue.execute(ITEMS)
        queue.execute("INSERT INTO items (id) VALUES ('o-1')")
        own = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
        own |= {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}
        with child(sys.executable, "worker.py", cwd=tmp_path, env=own) as first:
            until(lambda: len(server.requests) == 3 or first.poll() is not None)
        assert item() == ("open", 1)
        assert after_another() == ("given up", 2)
        messages = [message for body in server.requests for message in body["messages"] if message["role"] == "tool"]
        answers = {message["tool_call_id"]: message["content"] for message in messages}
        assert sum('"success"' in content for content in answers.values()) == 5
        asked = len(server.requests)
        # Whoever puts it back finds it used up, and asks no model.
        queue.execute("UPDATE items SET state = 'open'")
        assert after_another() == ("given up", 3)
        assert len(server.requests) == asked
