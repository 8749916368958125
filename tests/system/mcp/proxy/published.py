"""
What `python -m tests.system.mcp` has installed: a test asks for a part by name and is skipped with the reason if it is not there.
"""

import os
import shutil

from pathlib import Path

import pytest


HOME = os.environ.get("GUARDRAILS_MCP_HOME", "")
NOT_ASKED = "python -m tests.system.mcp installs what this needs"


def home() -> Path:
    if not HOME:
        pytest.skip(NOT_ASKED)
    return Path(HOME)


def module() -> Path:
    """
    The folder of the packages of npm.
    """
    return home() / "node" / "node_modules"


def node() -> str:
    """
    A `node` that is new enough: that of the wheel, else that of the PATH.
    """
    found = home() / "bin" / "node"
    other = shutil.which("node")
    if not found.is_file() and not other:
        pytest.skip("there is no node: neither its wheel nor one on the PATH")
    return str(found) if found.is_file() else str(other)


def script(package: str, entry: str = "dist/index.js") -> tuple[str, str]:
    """
    The command of an MCP package of npm.
    """
    file = module() / "@modelcontextprotocol" / package / entry
    if not file.is_file():
        pytest.skip(f"@modelcontextprotocol/{package} is not installed")
    return node(), str(file)


def program(name: str) -> str:
    """
    The program of a package of Python.
    """
    file = home() / "bin" / name
    if not file.is_file():
        pytest.skip(f"{name} is not installed")
    return str(file)
