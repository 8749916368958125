"""
The stories that each host is told: a stuck model, one that never comes to an end, and honest work.
"""

import json
import time

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.hosts.driver import Asked, Call, Ran, Say


HONEST: Final = 20
"""Calls of the honest story, and the cap of `capped.yaml`."""
POLICIES: Final[Mapping[str, str | Path]] = {
    "stuck": "default",
    "distinct": Path(__file__).with_name("capped.yaml"),
    "honest": "default",
}
"""The stories, and the policy of each."""
PROMPT: Final = "Find out what is wrong, and mend it."
PAGE: Final = 400
"""Characters of what a tool returns."""


class Telling:
    """
    One run of a story, or of `searches`, honest calls that are all distinct: the tools and the scripted model, and what they count.

    The model is cut short, as by a person, after *calls* calls or *seconds* seconds. Its clock goes on by a second a request, so
    that limits of calls a second do not act. It says what it used: a token for four characters of what it reads and writes.
    """

    def __init__(self, story: str, *, calls: int, seconds: float) -> None:
        self.story = story
        self.requests = self.asked = self.executed = self.tokens = 0
        self.over = False
        self._calls, self._until = calls, time.monotonic() + seconds
        self._now, self._written, self._version = 1_700_000_000.0, 0, 0

    def clock(self) -> float:
        """
        Seconds since 1970.
        """
        return self._now

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        """
        The tools of the story: a search with the same page for the same query, or a file as it is now and tests that fail in the same way.
        """

        def search(query: str) -> str:
            """Search the web for a query."""
            return self._ran(f"A page about {query}. ".ljust(PAGE, "."))

        def read_file(path: str) -> str:
            """Read a file."""
            return self._ran(f"{path}, version {self._version}. ".ljust(PAGE, "."))

        def edit_file(path: str, text: str) -> str:
            """Write a file."""
            self._version += 1
            return self._ran("written")

        def run_tests() -> str:
            """Run the tests."""
            return self._ran("2 failed, 40 passed")

        return (read_file, edit_file, run_tests) if self.story == "honest" else (search,)

    def _ran(self, result: str) -> str:
        self.executed += 1
        return result

    def script(self, asked: Asked) -> Say:
        """
        What the model says.
        """
        self._now += 1
        self.requests += 1
        said = self._said(asked)
        self.asked += len(said.calls)
        out = len(said.text) + sum(len(json.dumps(call.arguments)) + len(call.tool) for call in said.calls)
        into = len(PROMPT) + len(json.dumps(asked.schemas, default=str)) + self._written
        into = (into + sum(map(len, asked.results))) // 4
        self._written += out
        self.tokens += into + out // 4
        return Say(said.text, said.calls, (into, out // 4))

    def _said(self, asked: Asked) -> Say:
        if asked.off:
            return Say("I know nothing of it.")
        if self.story in ("honest", "searches") and self.asked >= HONEST:
            return Say("It is mended.")
        if self.story == "honest":
            return _at_work(self.asked)
        if self.asked >= self._calls or time.monotonic() > self._until:
            self.over = True
            return Say("A person has stopped me.")
        return Say(calls=(Call("search", {"query": "x" if self.story == "stuck" else f"q{self.asked}"}),))

    def told(self, ran: Ran, seconds: float, digest: str | None = None) -> dict[str, Any]:
        """
        What came of the run, which took *seconds*; *digest* is the session's, if it had one.
        """
        ending = "digest" if ran.answer == digest else "answer" if ran.answer else "silence"
        if self.over or ran.error is not None:
            ending = "over" if self.over else type(ran.error).__name__
        return {
            "executions": self.executed,
            "not_run": self.asked - self.executed,
            "requests": self.requests,
            "tokens": self.tokens,
            "ending": ending,
            "seconds": round(seconds, 2),
        }


def _at_work(n: int) -> Say:
    """
    Reads a file, edits it, runs the tests, and so on.
    """
    file = {"path": "src/app.py"}
    steps = (Call("read_file", file), Call("edit_file", {**file, "text": f"attempt {n}"}), Call("run_tests"))
    return Say(calls=(steps[n % 3],))
