"""
The commands `guardrails mcp pins` and `guardrails mcp allow`: what servers changed, and that it is allowed.
"""

import difflib
import json
import shlex
import sys
import time

from typing import Any

from guardrails.core.values.errors import StoreError

from .pins import Pin, Pins, pins_file
from .words import visible


USAGE = """\
Usage: guardrails mcp pins [--json] [--pins FILE]
       guardrails mcp allow [--pins FILE] SERVER [TOOL]...

`pins` shows the servers whose tools were seen. Of a held tool it shows what the
tool says now beside what it said first. `allow` lets the named tools of SERVER
run again. Without a TOOL it allows all of them. SERVER is a name or an id.

Examples:
  guardrails mcp pins
  guardrails mcp pins --json
  guardrails mcp allow time
"""


def main(argv: list[str]) -> int:
    """
    Run the command that *argv* names. Returns its exit code.
    """
    words, path, as_json = list(argv[1:]), pins_file(), False
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("--help", "-h"):
            sys.stdout.write(USAGE)
            return 0
        if word == "--json" and argv[0] == "pins":
            as_json = True
        elif word.startswith("--pins=") or (word == "--pins" and words):
            path = word.partition("=")[2] or words.pop(0)
        else:
            return _wrong(f"unknown option `{word}`" if word != "--pins" else "`--pins` needs a value")
    if argv[0] == "pins" and words:
        return _wrong(f"`pins` takes no `{words[0]}`")
    if argv[0] == "allow" and not words:
        return _wrong("`allow` needs the name of a server")
    pins = Pins(path)
    try:
        return _listed(pins, path, as_json=as_json) if argv[0] == "pins" else _allowed(pins, words[0], words[1:])
    except StoreError as error:
        sys.stderr.write(f"guardrails mcp: {error}\n")
        return 2


def _wrong(what: str) -> int:
    sys.stderr.write(f"guardrails mcp: {what}\n{USAGE}")
    return 2


def _listed(pins: Pins, path: str, *, as_json: bool) -> int:
    found = pins.listed()
    if as_json:
        sys.stdout.write(json.dumps([_to_dict(pin) for pin in found], indent=2) + "\n")
        return 0
    named = "" if path == pins_file() else f"--pins {shlex.quote(path)} "
    servers: dict[tuple[str, str], list[Pin]] = {}
    for pin in found:
        servers.setdefault((pin.server.label, pin.server.key), []).append(pin)
    if not servers:
        sys.stdout.write("No tool of an MCP server was seen yet.\n")
    for (label, key), own in servers.items():
        held = [pin for pin in own if pin.reason]
        tools = "1 tool" if len(own) == 1 else f"{len(own)} tools"
        sys.stdout.write(f"{_shown(label)} ({key}): {tools}, {len(held)} held\n")
        for pin in held:
            sys.stdout.write(f"  {_shown(pin.tool)}: {pin.reason}\n")
            sys.stdout.writelines(f"    {line}\n" for line in _difference(pin))
        if held:
            sys.stdout.write(f"  to allow: guardrails mcp allow {named}{key} [TOOL]...\n")
    return 0


def _allowed(pins: Pins, named: str, tools: list[str]) -> int:
    own = [pin for pin in pins.listed() if named in pin.server]
    if not own:
        return _wrong(f"no server `{named}` was seen: `guardrails mcp pins` lists them")
    # A server that was given other arguments since is there by its old ones still, with nothing to allow.
    keys = {pin.server.key for pin in own if pin.reason} or {own[0].server.key}
    if len(keys) > 1:
        return _wrong(f"several servers are called `{named}`: give the id of one, {', '.join(sorted(keys))}")
    allowed = pins.allow(next(iter(keys)), tools)
    if allowed:
        sys.stdout.write(f"allowed: {', '.join(map(_shown, allowed))}\n")
    lacking = [tool for tool in tools if tool not in allowed]
    if lacking or not allowed:
        names = ", ".join(f"`{_shown(tool)}`" for tool in lacking)
        what = f"no tool {names} of" if names else "no tool of"
        sys.stderr.write(f"guardrails mcp: {what} `{_shown(named)}` is held\n")
    return 1 if lacking or not allowed else 0


def _difference(pin: Pin) -> list[str]:
    if pin.changed is None:
        return []
    before, now = (_lines(said) for said in (pin.declared, pin.changed))
    lines = [
        line
        for line in difflib.unified_diff(before, now, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    return lines if len(lines) <= 40 else [*lines[:40], f"... {len(lines) - 40} more lines"]  # fmt: skip


def _lines(said: dict[str, Any]) -> list[str]:
    # Escaped, so that nothing of it moves the cursor or hides.
    return [line[:300] for line in json.dumps(said, indent=1, sort_keys=True).splitlines()]


def _shown(text: str) -> str:
    return " ".join(visible(text).split())[:100]


def _to_dict(pin: Pin) -> dict[str, Any]:
    return {
        "server": pin.server.label,
        "id": pin.server.key,
        "tool": pin.tool,
        "first_seen": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(pin.first_seen)),
        "held": pin.reason or None,
        "declared": pin.declared,
        "changed": pin.changed,
    }
