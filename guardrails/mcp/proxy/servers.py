"""
Many servers behind one budget: each has a proxy of its own, and they share a session in one store.

A client goes on to know each server by its name, and one that dies takes no other along.
"""

import json
import os
import re
import sys
import time

from typing import Any

from guardrails.mcp.config import McpServer, read_servers
from guardrails.stores.places import state_folder, whole_place

from .options import Options, UsageError


STORE = "mcp.db"
_PATHS = ("records", "pins")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
"""A variable of the environment, as clients write it in their files: `${KEY}`, `${env:KEY}`, `${KEY:-what else}`."""


def printed(options: Options) -> str:
    """
    The file of servers for a client, in which each one is behind a proxy with these *options*.

    Raises PolicyError for a file that is wrong, OSError if it cannot be read.
    """
    path = os.path.abspath(options.config or "")  # noqa: PTH100
    said: list[str] = []
    for name in ("policy", "session", "user", "tenant", "store", "records", "structured", "pins"):
        value = getattr(options, name)
        if value is not None and value != Options._field_defaults[name]:
            said.append(f"--{name}={_whole(name, value)}")
    made: dict[str, Any] = {}
    for server in read_servers(path, any_name=True):
        # Isolated: a client starts it in a folder that may hold anybody's guardrails.py.
        arguments = ["-I", "-m", "guardrails", "mcp", f"--config={path}", f"--server={server.name}", *said]
        made[server.name] = {"command": sys.executable, "args": arguments, **server.switches}
    return json.dumps({"mcpServers": made}, indent=2, ensure_ascii=False) + "\n"


def chosen(options: Options) -> Options:
    """
    *options* with the command of the server that they name. All servers share the session of the day, if none is named, in
    the user's own store, if none is.

    Raises UsageError for a server that is not there, and as `printed` does.
    """
    servers = {server.name: server for server in read_servers(options.config or "", any_name=True)}
    found: McpServer | None = servers.get(options.server or "")
    if found is None:
        known = ", ".join(f"`{name}`" for name in servers) or "none"
        raise UsageError(f"`{options.config}` has no server `{options.server}`; it has {known}")
    if found.sandbox not in (None, "none") or not found.network:
        sys.stderr.write(
            f"guardrails mcp: `{found.name}` is not confined: `sandbox` and `network` hold in `guardrails run`\n"
        )
    store = options.store
    if store is None:
        folder = state_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        store = os.path.join(folder, STORE)  # noqa: PTH118
    return options._replace(
        command=() if found.command is None else tuple(map(_filled, (found.command, *found.args))),
        url=found.url and _filled(found.url),
        headers=tuple((name, _filled(value)) for name, value in found.headers.items()),
        environment=tuple((name, _filled(value)) for name, value in found.env.items()),
        folder=found.cwd and _filled(found.cwd),
        pins=options.pins if found.pins else "none",
        session=options.session or f"servers:{time.strftime('%Y-%m-%d')}",
        store=store,
    )


def _filled(text: str) -> str:
    """
    *text* with the variables that are set: a client that starts us does not see what is in the file.
    """
    return _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0] if found[2] is None else found[2]), text)


def _whole(name: str, value: str) -> str:
    """
    *value* as it is valid in any folder.
    """
    if name == "store":
        return whole_place(value)
    is_path = os.path.exists(value) if name == "policy" else name in _PATHS and value != "none"  # noqa: PTH110
    return os.path.abspath(value) if is_path else value  # noqa: PTH100
