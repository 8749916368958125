"""
What the command `guardrails mcp` is told, read without a library: it starts before anything is imported.
"""

from typing import Any, Final, NamedTuple


USAGE: Final = """\
Usage: guardrails mcp [OPTIONS] -- COMMAND [ARGUMENTS]...
       guardrails mcp snippet CLIENT

Stands in front of an MCP server and guards its tools. All else passes as it is.

Options:
  --policy NAME|PATH   the policy: default, strict, observe, or a file  [default: default]
  --session NAME       the session of all calls; else each process is one, or a client names it
  --user ID            whose calls these are, for a policy with a scope `user`
  --tenant ID          the same for a scope `tenant`
  --store PATH         a file of SQLite for the state, which processes share; else memory
  --records PATH       a file of JSON lines for what was decided
  --structured keep|drop
                       whether tools promise a form of their structured content: without it any result can be cut
                       [default: keep]
  --help               show this and exit
"""


class Options(NamedTuple):
    """
    What the command was told.
    """

    command: tuple[str, ...] = ()
    policy: str = "default"
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    store: str | None = None
    records: str | None = None
    structured: str = "keep"


class UsageError(Exception):
    """
    The command was told what it does not know.
    """


_NAMES: Final = tuple(name for name in Options._fields if name != "command")


def options_of(argv: list[str]) -> Options:
    """
    What *argv* says. Raises UsageError.
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
        flag, given, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in _NAMES:
            raise UsageError(f"unknown option `{flag}`")
        if not given:
            if not rest or rest[0] == "--":
                raise UsageError(f"`{flag}` needs a value")
            value = rest.pop(0)
        if not value:
            raise UsageError(f"`{flag}` is empty")
        said[name] = value
    if said.get("structured", "keep") not in ("keep", "drop"):
        raise UsageError("`--structured` is keep or drop")
    if not rest:
        raise UsageError("there is no command: say how to start the server after `--`")
    return Options(command=tuple(rest), **said)
