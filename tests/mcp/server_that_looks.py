"""
A real MCP server over stdio that looks around: what it may use, see, reach and write.
"""

import os
import socket

from pathlib import Path

from mcp.server import MCPServer


server = MCPServer("looking")


@server.tool()
def environment() -> dict[str, str]:
    """
    The variables of this process.
    """
    return dict(os.environ)


@server.tool()
def reach(port: int) -> str:
    """
    Connect to a port of this machine.
    """
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "reached"


@server.tool()
def write(path: str) -> str:
    """
    Write a file.
    """
    try:
        Path(path).write_text("written", encoding="utf-8")
    except OSError as error:
        return type(error).__name__
    return "written"


@server.tool()
def read(path: str) -> str:
    """
    Read a file.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return type(error).__name__


if __name__ == "__main__":
    server.run()
