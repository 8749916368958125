"""
A client that writes and reads bytes, a line at a time, so that a test sees what really went over the pipe.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self


ROOT = Path(__file__).parents[3]
ENVIRONMENT: dict[str, str] = {"PYTHONPATH": str(ROOT)}


def tap(*server: str, **options: object) -> tuple[str, ...]:
    """
    The command of our proxy before a *server*'s command.
    """
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return (sys.executable, "-m", "guardrails", "mcp", *given, "--", *server)


class Lines:
    """
    A process that reads and writes lines; to be used in a `with`.
    """

    def __init__(self, *command: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT, **environment},
        )
        self.errors: list[bytes] = []
        self._read: queue.Queue[bytes | None] = queue.Queue()
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads.append(threading.Thread(target=self._overhear, daemon=True))
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def close(self, seconds: float = 10) -> int:
        """
        Close the process's input and wait; the exit code, or a kill after some *seconds*.
        """
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(seconds)
        return self.process.returncode

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._read.put(line.removesuffix(b"\n"))
        self._read.put(None)

    def _overhear(self) -> None:
        assert self.process.stderr
        self.errors.extend(self.process.stderr)

    def send(self, *lines: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def next(self, seconds: float = 20) -> bytes:
        """
        The next line; raises TimeoutError if there is none in time, EOFError at the end.
        """
        try:
            line = self._read.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no line in {seconds} s; stderr: {b''.join(self.errors)!r}") from None
        if line is None:
            self._read.put(None)
            raise EOFError(f"the process ended; stderr: {b''.join(self.errors)!r}")
        return line

    def until(self, fits: Callable[[bytes], bool], seconds: float = 20) -> Iterator[bytes]:
        """
        The lines up to the first that *fits*, this one included.
        """
        end = time.monotonic() + seconds
        while True:
            line = self.next(max(0.01, end - time.monotonic()))
            yield line
            if fits(line):
                return

    def reply(self, name: Any, seconds: float = 20) -> bytes:
        """
        The answer to the request with this id; what came before it is dropped.
        """
        return list(self.until(lambda line: _answers(line, name), seconds))[-1]

    def ask(self, method: str, params: Any = None, *, id: Any = 1, seconds: float = 20) -> dict[str, Any]:
        self.send(request(method, params, id=id))
        found: dict[str, Any] = json.loads(self.reply(id, seconds))
        return found

    def call(self, tool: str, /, *, id: Any = 1, within: float = 20, **arguments: Any) -> dict[str, Any]:
        """
        The result of a tool's call, or the JSON-RPC error.
        """
        found = self.ask("tools/call", {"name": tool, "arguments": arguments}, id=id, seconds=within)
        result: dict[str, Any] = found.get("result", found)
        return result

    def start(self) -> Self:
        """
        Say hello as a client of 2025-11-25 does, and list the tools.
        """
        client = {"name": "lines", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert "result" in self.ask("initialize", hello, id="hello")
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert "result" in self.ask("tools/list", {}, id="tools")
        return self


def request(method: str, params: Any = None, *, id: Any = 1) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def _answers(line: bytes, name: Any) -> bool:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and "method" not in message and message.get("id", ...) == name


def words(result: dict[str, Any]) -> str:
    """
    All text of a result.
    """
    return "\n".join(one["text"] for one in result.get("content", ()) if one.get("type") == "text")
