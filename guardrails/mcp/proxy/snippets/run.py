"""
The command `guardrails mcp snippet CLIENT`: what stands in a client's configuration file, so that it starts a server guarded.
"""

import json
import os
import re
import sys

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from .clients import CLIENTS


USAGE: Final = """\
Usage: guardrails mcp snippet CLIENT [--name NAME]
           [OPTIONS OF `guardrails mcp`] -- COMMAND [ARGUMENTS]...

Prints what stands in the client's configuration file. The file is yours:
nothing is written.

Clients:
  {clients}

Examples:
  guardrails mcp snippet claude-code
  guardrails mcp snippet cursor --policy strict -- uvx mcp-server-time
"""
_PLACEHOLDER: Final = ("YOUR-SERVER", "ITS-ARGUMENTS")
_PATHS: Final = frozenset({"store", "records", "config"})
_RUNNERS: Final = frozenset({"npx", "uvx", "uv", "run", "node", "npm", "exec", "bunx", "pipx", "docker", "deno", "env"})


def _clients() -> str:
    from textwrap import fill

    return fill(", ".join(CLIENTS), 78, break_on_hyphens=False).replace("\n", "\n  ")


def snippet(client: str, command: Sequence[str], options: Sequence[str] = (), *, name: str | None = None) -> str:
    """
    Returns the entry in the file of *client* that starts `guardrails mcp OPTIONS -- COMMAND` as the server *name*.

    Raises KeyError if there is no such client.
    """
    return written(client, {name or _name_of(command, options): [*options, *(["--", *command] if command else [])]})


def written(client: str, servers: Mapping[str, Sequence[str]]) -> str:
    """
    Returns the entry in the file of *client* for *servers*: by their names, the arguments of `guardrails mcp`.
    """
    kind = CLIENTS[client]
    starts = {name: ["-I", "-m", "guardrails", "mcp", *arguments] for name, arguments in servers.items()}
    if kind.toml:
        return "\n".join(_table(kind.key, name, start) for name, start in starts.items())
    entries = {name: {**dict(kind.more), "command": sys.executable, "args": start} for name, start in starts.items()}
    return json.dumps({kind.key: entries}, indent=2, ensure_ascii=False) + "\n"


def _table(key: str, name: str, start: Sequence[str]) -> str:
    called = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
    args = "".join(f"  {_quoted(word)},\n" for word in start)
    # Codex hands on no other variable of its own environment than those that it is told.
    needed = ", ".join(map(_quoted, _variables(start)))
    handed = f"env_vars = [{needed}]\n" if needed else ""
    return f"[{key}.{called}]\ncommand = {_quoted(sys.executable)}\nargs = [\n{args}]\n{handed}"


def _variables(start: Sequence[str]) -> list[str]:
    """
    The variables of the environment that stand in headers of the command *start*.
    """
    options = start[: start.index("--")] if "--" in start else start
    found = [name for word in options if word.startswith("--header=") for name in re.findall(r"\$\{(\w+)\}", word)]
    return list(dict.fromkeys(found))


def _quoted(word: str) -> str:
    """
    *word* as a basic string of TOML: those of JSON are, but for DEL.
    """
    return json.dumps(word, ensure_ascii=False).replace("\x7f", "\\u007f")


def _name_of(command: Sequence[str], options: Sequence[str]) -> str:
    """
    Returns a name for the server: the first word that is no runner and no option, without its folder, scope and
    version.
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
    asked = argv[: argv.index("--")] if "--" in argv else argv
    if not argv or "--help" in asked or "-h" in asked:
        (sys.stdout if argv else sys.stderr).write(USAGE.format(clients=_clients()))
        return 0 if argv else 2
    client, *rest = argv
    if client not in CLIENTS:
        return _wrong(f"unknown client `{client}`: use {', '.join(CLIENTS)}")
    at = rest.index("--") if "--" in rest else len(rest)
    told, command = rest[:at], rest[at + 1 :]
    try:
        options, said = _options(told)
        if not command and not said.keys() & {"url", "config"}:
            command = list(_PLACEHOLDER)
        _checked(options, command)
        if "config" in said and "server" not in said:
            servers = {name: [*options, f"--server={name}"] for name in _names(said["config"])}
            text = written(client, servers)
        else:
            text = snippet(client, command, options, name=said.get("name", said.get("server")))
        text.encode()
    except UnicodeEncodeError:
        return _wrong("a word is not UTF-8: a configuration file cannot hold it")
    except (OSError, ValueError) as error:
        from guardrails.core.values.errors import said_of

        return _wrong(said_of(error) if isinstance(error, OSError) else str(error))
    kind = CLIENTS[client]
    sys.stderr.write(f"{kind.title}: {kind.where}\nOther entries stay: add this one. {kind.then}\n\n")
    needed = [] if kind.toml else _variables(options)
    if needed:
        names = ", ".join(f"`{one}`" for one in needed)
        sys.stderr.write(
            f"It needs {names} in its environment: some clients hand on only what `env` of the entry names.\n\n"
        )
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    return 0


def _options(told: list[str]) -> tuple[list[str], dict[str, str]]:
    """
    The options as `--name=value` with whole paths, since a client starts in a folder of its own; and what each says.
    """
    from guardrails.policy.compiled.source import whole

    options, said = [], {}
    rest = iter(told)
    for word in rest:
        if not word.startswith("--"):
            raise ValueError(f"`{word}`: the server's command goes after `--`")
        flag, equals, value = word[2:].partition("=")
        given = value if equals else next(rest, None)
        if not given:
            raise ValueError(f"`--{flag}` needs a value")
        if flag == "policy":
            given = whole(given)
        elif flag in _PATHS:
            given = os.path.abspath(given)  # noqa: PTH100  `..` behind a link stays
        said[flag] = given
        if flag != "name":
            options.append(f"--{flag}={given}")
    return options, said


def _checked(options: list[str], command: Sequence[str]) -> None:
    """
    Raises ValueError for options that `guardrails mcp` does not take, and for a policy that is wrong. The variables of a
    header are the client's own.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.mcp.proxy.loading import checked
    from guardrails.mcp.proxy.options import UsageError, options_of

    try:
        read = options_of(
            [*(re.sub(r"\$\{\w+\}", "x", one) if one.startswith("--header=") else one for one in options)]
            + (["--", *command] if command else [])
        )
        # A client shows nothing of a server that does not start.
        checked(read)
    except (UsageError, PolicyError) as error:
        raise ValueError(str(error)) from None


def _names(path: str) -> list[str]:
    from guardrails.core.values.errors import PolicyError
    from guardrails.mcp.config import read_servers

    try:
        return [server.name for server in read_servers(Path(path), any_name=True)]
    except PolicyError as error:
        raise ValueError(str(error)) from None


def _wrong(message: str) -> int:
    sys.stderr.write(f"guardrails mcp snippet: {message}\n")
    return 2
