"""
A streamable HTTP front for a stdio server, so that the conformance suite, which speaks HTTP only, reaches a stdio proxy.

`python -m tests.system.mcp.bridge PORT COMMAND...`. It is our own proxy of many clients, with a process for each of their sessions.
"""

import asyncio
import os
import sys

from typing import Any

from guardrails.mcp import proxy
from guardrails.mcp.command import options_of
from guardrails.mcp.servers import near_server


def main(port: str, *command: str) -> None:
    door: Any = proxy
    door.remote_server = lambda url, headers: near_server(command, os.environ)
    options = options_of([f"--listen={port}", "--url=http://127.0.0.1", "--policy=observe", "--pins=none"])
    asyncio.run(proxy.listening(options))


if __name__ == "__main__":
    main(*sys.argv[1:])
