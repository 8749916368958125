"""
The command `guardrails mcp snippet CLIENT`: what stands in a client's configuration file, so that it starts a server guarded.
"""

import json
import os
import re
import sys

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


USAGE: Final = """\
Usage: guardrails mcp snippet CLIENT [--name NAME] [OPTIONS OF `guardrails mcp`] -- COMMAND [ARGUMENTS]...

Prints what stands in the client's configuration file. The file is yours: nothing is written.

Clients: {clients}
"""
_PLACEHOLDER: Final = ("YOUR-SERVER", "ITS-ARGUMENTS")
_PATHS: Final = frozenset({"store", "records", "config"})
_RUNNERS: Final = frozenset({"npx", "uvx", "uv", "run", "node", "npm", "exec", "bunx", "pipx", "docker", "deno", "env"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """
    Where a client keeps its MCP servers.
    """

    title: str
    where: str
    """The file, or the page of its settings."""
    key: str = "mcpServers"
    more: tuple[tuple[str, str], ...] = ()
    """What else stands beside the command."""
    toml: bool = False
    then: str = "Start it anew."
    """What makes it read the file."""


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client(
        title="Claude Desktop",
        where="claude_desktop_config.json (Settings, Developer, Edit Config): in ~/Library/Application Support/Claude on "
        "macOS, %APPDATA%\\Claude on Windows",
    ),
    "claude-code": Client(
        title="Claude Code",
        where=".mcp.json in the project's folder",
        more=(("type", "stdio"),),
        then="It asks once whether the project's servers may be used; `claude mcp list` shows it.",
    ),
    "cursor": Client(title="Cursor", where="~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder"),
    "vscode": Client(
        title="VS Code",
        where=".vscode/mcp.json, or your own mcp.json (command `MCP: Open User Configuration`)",
        key="servers",
        more=(("type", "stdio"),),
        then="Press Start above the entry.",
    ),
    "windsurf": Client(
        title="Windsurf",
        where="~/.codeium/windsurf/mcp_config.json",
        then="Refresh the list of servers in Cascade.",
    ),
    "zed": Client(
        title="Zed",
        where="settings.json (command `zed: open settings`)",
        key="context_servers",
        then="It reads the file at once.",
    ),
    "codex": Client(
        title="Codex",
        where="~/.codex/config.toml",
        key="mcp_servers",
        toml=True,
        then="`codex mcp list` shows it.",
    ),
    "gemini": Client(
        title="Gemini CLI",
        where="~/.gemini/settings.json, or .gemini/settings.json in the project's folder",
        then="`gemini mcp list` shows it.",
    ),
    "jetbrains": Client(
        title="JetBrains AI Assistant",
        where="Settings, Tools, AI Assistant, Model Context Protocol (MCP), Add, as JSON",
        then="Apply.",
    ),
    "cline": Client(
        title="Cline",
        where="cline_mcp_settings.json (MCP Servers, Configure, Configure MCP Servers)",
        then="It reads the file at once.",
    ),
}


def snippet(client: str, command: Sequence[str], options: Sequence[str] = (), *, name: str | None = None) -> str:
    """
    What stands in the file of *client* so that it starts `guardrails mcp OPTIONS -- COMMAND`; *name* is that of the server.

    Raises KeyError if there is no such client.
    """
    kind = CLIENTS[client]
    start = ["-I", "-m", "guardrails", "mcp", *options, *(["--", *command] if command else [])]
    called = name or _name_of(command, options)
    if kind.toml:
        key = called if re.fullmatch(r"[A-Za-z0-9_-]+", called) else _quoted(called)
        args = "".join(f"  {_quoted(word)},\n" for word in start)
        return f"[{kind.key}.{key}]\ncommand = {_quoted(sys.executable)}\nargs = [\n{args}]\n"
    entry: dict[str, Any] = {**dict(kind.more), "command": sys.executable, "args": start}
    return json.dumps({kind.key: {called: entry}}, indent=2, ensure_ascii=False) + "\n"


def _quoted(word: str) -> str:
    """
    *word* as a basic string of TOML: those of JSON are, but for DEL.
    """
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")


def _name_of(command: Sequence[str], options: Sequence[str]) -> str:
    """
    What the server may be called: the first word that is no runner and no option, without its folder, scope and version.
    """
    words = [word for word in command if not word.startswith("-") and word not in _RUNNERS]
    named = [word for word in words if not re.fullmatch(r"(?i)(?:.*[\\/])?python[\d.]*w?(?:\.exe)?", word)]
    url = next((re.split(r"[/:?]+", word)[1] for word in options if re.match(r"(?:--url=)?https?://", word)), "")
    last = re.split(r"[\\/]", named[0])[-1] if named else url
    plain = re.sub(r"(?<=.)@.*|\.(?:py|js|mjs|ts|exe)$", "", last)
    short = re.sub(r"^(?:mcp-)?server-|^mcp-|-mcp(?:-server)?$", "", plain.lower())
    return re.sub(r"[^a-z0-9_-]+", "-", short).strip("-") or "guarded"


def main(argv: Sequence[str]) -> int:
    """
    Print the snippet that *argv* asks for, and on stderr where it goes; the exit code.
    """
    if not argv or argv[0] in ("--help", "-h"):
        (sys.stdout if argv else sys.stderr).write(USAGE.format(clients=", ".join(CLIENTS)))
        return 0 if argv else 2
    client, *rest = argv
    if client not in CLIENTS:
        return _wrong(f"unknown client `{client}`: use {', '.join(CLIENTS)}")
    at = rest.index("--") if "--" in rest else len(rest)
    told, command = rest[:at], rest[at + 1 :]
    try:
        options, name = _options(told)
        if not command and not any(option.startswith(("--url", "--config")) for option in options):
            command = list(_PLACEHOLDER)
        _checked(options, command)
        text = snippet(client, command, options, name=name)
        text.encode()
    except UnicodeEncodeError:
        return _wrong("a word is not UTF-8: a configuration file cannot hold it")
    except ValueError as error:
        return _wrong(str(error))
    kind = CLIENTS[client]
    sys.stderr.write(f"{kind.title}: {kind.where}\nWhat stands there stays: add the entry. {kind.then}\n\n")
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    return 0


def _options(told: list[str]) -> tuple[list[str], str | None]:
    """
    The options as `--name=value` with whole paths, since a client starts in a folder of its own; and the server's name.
    """
    from guardrails.policy.compiled.source import whole

    said, name = [], None
    rest = iter(told)
    for word in rest:
        if not word.startswith("--"):
            raise ValueError(f"`{word}`: the server's command goes after `--`")
        flag, equals, value = word[2:].partition("=")
        given = value if equals else next(rest, None)
        if not given:
            raise ValueError(f"`--{flag}` needs a value")
        if flag == "name":
            name = given
            continue
        if flag == "policy":
            given = whole(given)
        said.append(f"--{flag}={os.path.abspath(given) if flag in _PATHS else given}")  # noqa: PTH100  `~` is kept
    return said, name


def _checked(options: list[str], command: Sequence[str]) -> None:
    """
    Raises ValueError for options that `guardrails mcp` does not take.
    """
    from .options import UsageError, options_of

    try:
        options_of([*options, *(["--", *command] if command else [])])
    except UsageError as error:
        raise ValueError(str(error)) from None


def _wrong(message: str) -> int:
    sys.stderr.write(f"guardrails mcp snippet: {message}\n")
    return 2
