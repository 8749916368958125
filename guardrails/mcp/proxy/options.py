"""
The options of the command `guardrails mcp`, read without a library: the command starts before anything is imported.
"""

import os

from typing import Any, Final, NamedTuple


USAGE: Final = """\
Usage: guardrails mcp [OPTIONS] -- COMMAND [ARGUMENTS]...
       guardrails mcp [OPTIONS] --url URL
       guardrails mcp [OPTIONS] --url URL --listen [HOST:]PORT
       guardrails mcp [OPTIONS] --config FILE [--server NAME]
       guardrails mcp pins [--json] [--pins FILE]
       guardrails mcp allow [--pins FILE] SERVER [TOOL]...

Stands in front of an MCP server and guards its tools. All else passes as it is.

Options:
  --policy NAME|PATH   the policy: default, strict, observe, or a file
                       [default: default]
  --session NAME       the session of all calls; without it each process is
                       one, or a client names it
  --user ID            the user of the calls, for a policy with a scope `user`
  --tenant ID          the tenant of the calls, for a scope `tenant`
  --store PATH|URL     a file of SQLite for the state, which processes share,
                       or redis://..; without it memory
  --records PATH       a file of JSON lines for what was decided
  --structured keep|drop
                       keep: tools promise the form of structured content.
                       drop: they do not, so any result can be cut
                       [default: keep]
  --pins FILE|none     the file of what tools said when first seen; a tool
                       that changes is held until `guardrails mcp allow`. none:
                       no tool is held  [default: a file of your state folder]
  --url URL            a server over streamable HTTP
  --header NAME:VALUE  a header for it, such as its key; ${NAME} stands for a
                       variable of the environment
  --listen [HOST:]PORT listen over streamable HTTP before the server at --url,
                       on this machine only if no HOST is named
  --identity-header NAME, --tenant-header NAME
                       headers that name the user and the tenant of a request;
                       a proxy in front of this one sets them
  --token-key FILE     public keys (PEM or a JWK set) that bearer tokens are
                       signed with; a token names user and tenant
  --token-audience URL the audience that a token must name: the address of this
                       proxy, as clients know it
  --token-issuer URL   the issuer that a token must name
  --identity-claim NAME, --tenant-claim NAME
                       claims of a token that name the user and the tenant
                       [default: sub, none]
  --allow-host NAMES   names of this proxy, beside localhost, that clients may
                       use, with commas between them
  --config FILE        a client's file of servers (`mcpServers`). With --server
                       that one is started. Without it the file is printed
                       with each server behind one budget
  --server NAME        the server of that file to start
  --help               show this and exit

Examples:
  guardrails mcp -- npx -y @modelcontextprotocol/server-filesystem .
  guardrails mcp --policy strict --records mcp.jsonl -- python server.py
"""


class Options(NamedTuple):
    """
    The options that the command was given.
    """

    command: tuple[str, ...] = ()
    policy: str = "default"
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    store: str | None = None
    records: str | None = None
    structured: str = "keep"
    pins: str | None = None
    config: str | None = None
    server: str | None = None
    url: str | None = None
    listen: str | None = None
    identity_header: str | None = None
    tenant_header: str | None = None
    token_key: str | None = None
    token_audience: str | None = None
    token_issuer: str | None = None
    identity_claim: str | None = None
    tenant_claim: str | None = None
    allow_host: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    """Added for the server to that of this process."""
    folder: str | None = None
    """The working directory of the server."""


class UsageError(Exception):
    """
    The command was told what it does not know.
    """


class HelpAsked(Exception):
    """
    Stands among the options: `--help`, or `-h`.
    """


_NAMES: Final = tuple(name for name in Options._fields if name not in ("command", "environment", "folder", "headers"))


def options_of(argv: list[str]) -> Options:
    """
    Returns the options that *argv* says. Raises UsageError, and HelpAsked if help is asked for before the command.
    """
    said: dict[str, Any] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-"):
            # The command itself, without `--`.
            rest.insert(0, word)
            break
        if word in ("--help", "-h"):
            raise HelpAsked
        flag, given, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or (name not in _NAMES and name != "header"):
            raise UsageError(f"unknown option `{flag}`")
        if not given:
            if not rest or rest[0] == "--":
                raise UsageError(f"`{flag}` needs a value")
            value = rest.pop(0)
        if not value:
            raise UsageError(f"`{flag}` is empty")
        if name == "header":
            said["headers"] = (*said.get("headers", ()), header_of(value))
        else:
            said[name] = value
    _check(said, rest)
    return Options(command=tuple(rest), **said)


def header_of(said: str) -> tuple[str, str]:
    """
    The name and the value of the header *said*. Raises UsageError.
    """
    name, given, value = said.partition(":")
    for part in value.split("${")[1:]:
        variable, closed, _ = part.partition("}")
        if not closed or variable not in os.environ:
            raise UsageError(f"`--header {name}` needs the variable `{variable}`, which is not set")
        value = value.replace(f"${{{variable}}}", os.environ[variable])
    name, value = name.strip(), value.strip()
    if (
        not given
        or not name.isascii()
        or not value.isprintable()
        or not all(one.isalnum() or one in "-_." for one in name)
    ):
        raise UsageError(f"`--header {name}` is NAME:VALUE")
    return name, value


def _check(said: dict[str, Any], command: list[str]) -> None:  # noqa: C901  a case for each mistake
    if said.get("structured", "keep") not in ("keep", "drop"):
        raise UsageError("`--structured` is keep or drop")
    config, url = said.get("config"), said.get("url")
    if said.get("server") is not None and config is None:
        raise UsageError("`--server` is the name of one in a `--config FILE`")
    if said.get("headers") is not None and url is None:
        raise UsageError("`--header` is for a server at a `--url URL`")
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"`{url}` is no http or https URL")
    listen = said.get("listen")
    if listen is not None and url is None:
        raise UsageError("`--listen` is before a server at a `--url URL`")
    port = "0" if listen is None else listen.rpartition(":")[2]
    if not port.isdecimal() or len(port) > 5 or int(port) > 65_535:
        raise UsageError(f"`--listen {listen}` is no [HOST:]PORT")
    for name in ("store", "records", "pins"):
        if os.path.isdir(said.get(name, "")):  # noqa: PTH112
            raise UsageError(f"`--{name} {said[name]}` is a folder, not a file")
    for name in ("identity_header", "tenant_header", "token_key", "allow_host"):
        if name in said and listen is None:
            raise UsageError(f"`--{name.replace('_', '-')}` is for `--listen`")
    for name in ("token_audience", "token_issuer", "identity_claim", "tenant_claim"):
        if name in said and "token_key" not in said:
            raise UsageError(f"`--{name.replace('_', '-')}` is of tokens: give `--token-key FILE`")
    if "token_key" in said and ("identity_header" in said or "tenant_header" in said):
        raise UsageError("a request is one's by a token or by headers: give `--token-key` or `--identity-header`")
    if "token_key" in said and "token_audience" not in said:
        raise UsageError("`--token-key` needs `--token-audience`: a token that is meant for others is none for us")
    given = [name for name, there in (("--config", config), ("--url", url), ("a command", command)) if there]
    if len(given) > 1:
        raise UsageError(f"there is {' and '.join(given)}: give one of them")
    if not given:
        raise UsageError("there is no command: say how to start the server after `--`")
