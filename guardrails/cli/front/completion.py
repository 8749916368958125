"""
Names that a shell completes: of policies, codes, clients. Each is imported only when a shell asks.
"""

from typing import Any, Final, NamedTuple

from .group import Command


SANDBOXES: Final = ("auto", "bwrap", "none")
WIRES: Final = ("chat", "responses")


class Word(NamedTuple):
    """
    A word that can stand next, as a shell is told.
    """

    value: str
    help: str | None = None
    type: str = "plain"


def policies() -> list[str]:
    """
    The names of the shipped policies; a shell completes files by itself.
    """
    from guardrails.policy.file.folder import names

    return names()


def codes() -> list[tuple[str, str]]:
    """
    Returns the codes that `guardrails explain` knows, each with its kind.
    """
    from guardrails.cli.codes import EXPLAINED

    return [(one.code, one.kind) for one in EXPLAINED.values()]


def sandboxes() -> list[str]:
    """
    Returns the values of `--sandbox`.
    """
    return list(SANDBOXES)


def wires() -> list[str]:
    """
    Returns the values of `--wire`.
    """
    return list(WIRES)


class Door(Command):
    """
    A command with a parser of its own: its next words are found by those before.
    """

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        before = list(ctx.args)
        return [Word(word) for word in _next(ctx.info_name, before) if word.startswith(incomplete)]


def _next(name: str | None, before: list[str]) -> list[str]:
    if name == "hook":
        from guardrails.hooks.install.places import CLIENTS

        return ["install", "uninstall", "status"] if not before else [one for one in CLIENTS if one not in before]
    if before[-1:] == ["--policy"]:
        return policies()
    if before[:1] in (["pins"], ["allow"]):
        return ["--pins", "--json"]
    from guardrails.mcp.proxy.options import Options

    apart = {"command", "headers", "environment", "folder"}
    options = [f"--{one.replace('_', '-')}" for one in Options._fields if one not in apart]
    return [*([] if before else ["pins", "allow"]), *options, "--header"]
