"""
A client that writes and reads lines, as MCP clients over stdio do, and the command of our proxy.
"""

import json
import os
import subprocess
import sys
import threading

from contextlib import suppress
from pathlib import Path
from typing import Any, Self


ROOT = Path(__file__).parents[2]
ENVIRONMENT: dict[str, str] = {"PYTHONPATH": str(ROOT)}
PROXY = (sys.executable, "-m", "guardrails", "mcp")
SERVER = (sys.executable, str(Path(__file__).with_name("server.py")))
WAIT_S = 150


def tap(*server: str, **options: object) -> tuple[str, ...]:
    """
    The command of our proxy before a *server*'s command.
    """
    given = (f"--{name}={value}" for name, value in options.items())
    return (*PROXY, *given, *(("--", *server) if server else ()))


class Process:
    """
    A process that answers lines with lines; to be used in a `with`. It is killed if it takes too long.
    """

    def __init__(self, *command: str, **environment: str) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.popen: Any = subprocess.Popen(command, env={**os.environ, **ENVIRONMENT, **environment}, **pipes)  # type: ignore[call-overload]
        self._timer = threading.Timer(WAIT_S, self.popen.kill)
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            with suppress(OSError):
                pipe.close()

    def send(self, data: bytes) -> None:
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def say(self, method: str, params: Any = None, id_: object = 1) -> None:
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}
        self.send(json.dumps(message).encode() + b"\n")

    def ask(self, method: str, params: Any = None, id_: object = 1) -> Any:
        """
        The answer to a question; what comes before it is dropped.
        """
        self.say(method, params, id_)
        while (said := json.loads(self.popen.stdout.readline())).get("id") != id_ or "method" in said:
            pass
        return said

    def call(self, name: str, arguments: Any = None, id_: object = 1) -> Any:
        """
        The result of a call.
        """
        return self.ask("tools/call", {"name": name, "arguments": arguments or {}}, id_)["result"]

    def start(self) -> Self:
        """
        Say hello as a client of 2025-11-25 does, and list the tools.
        """
        client = {"name": "lines", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        assert "result" in self.ask("initialize", hello)
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        assert "result" in self.ask("tools/list")
        return self

    def end(self) -> int:
        """
        The exit code once its input is closed.
        """
        self.popen.stdin.close()
        return int(self.popen.wait())


def words(result: dict[str, Any]) -> str:
    """
    All text of a result.
    """
    return "\n".join(one["text"] for one in result.get("content", ()) if one.get("type") == "text")
