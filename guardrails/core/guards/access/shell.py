"""
Refuse shell commands by what they would run.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from guardrails.core.guards.base import Codes, Facts, Guard, Verdict, guard
from guardrails.core.state.state import SessionState
from guardrails.core.tools.declared import TooManyError, named
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import install
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import Denial, ToolCall
from guardrails.core.values.units import FromText


if TYPE_CHECKING:
    from guardrails.core.commands import Command, Found, UnreadableError

# A policy that names no command does without the reading of commands: `commands` is imported where it is used.


def command_rule(text: object) -> object:
    """
    Returns *text* if it is no text, or a rule about commands. Raises ValueError for other text.
    """
    from guardrails.core import commands

    if isinstance(text, str):
        commands.rule(text)
    return text


CommandRule = Annotated[str, FromText(command_rule, {"type": "string", "minLength": 1})]

_SHOWN = 80
_NAMED = 20
_NAME = pattern(r"[A-Za-z0-9_./+-]+")


@guard
class Shell(Guard):
    """
    Read the commands that a tool declares (`commands: [command]`) as a shell would, and deny those that would run what
    *deny* speaks of.

    Pipes, lists, substitutions, wrappers (`sh -c`, `env`, `xargs`, `find -exec`, ...) and quoting are seen through. A
    command that cannot be read, and a fork bomb, are always denied. A denylist stops accidents, not an attacker: see
    docs/guards/shell.md.

    If *allow* is given, anything that it does not speak of is denied. So is any text but plain commands: words and quotes
    with no expansion, and `|`, `&&`, `||`, `;` between commands.
    """

    codes: ClassVar[Codes] = {
        "shell.deny": ("command", "rule"),
        "shell.allow": ("command",),
        "shell.unreadable": ("reason",),
        "shell.undecidable": ("reason",),
        "shell.fork_bomb": (),
    }
    scope_settings: ClassVar[tuple[str, ...] | None] = ()
    sees_unfit: ClassVar[bool] = False

    deny: tuple[CommandRule, ...] = ()
    """Rules; stands above *allow*. Blind to case."""
    allow: tuple[CommandRule, ...] = ()
    """Rules; empty allows every command that is not denied."""
    undecidable: Literal["deny", "allow"] = "deny"
    """The answer if the program that would run is known only at run time (`$X -rf /`, `curl ... | sh`, `eval "$X"`)."""

    def applies(self, tool: Tool) -> bool:
        return bool(tool.commands)

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        from guardrails.core import commands

        # It asks for none; but reading a hostile command may take seconds, which must not pass while the state is locked.
        with suppress(commands.UnreadableError, TooManyError, commands.NoParserError):
            for value in _values(call, tool, plain=bool(self.allow)):
                with suppress(commands.UnreadableError):
                    self._read(_command(value))
        return ()

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        from guardrails.core import commands

        try:
            for value in _values(call, facts.tool, plain=bool(self.allow)):
                command = _command(value)
                denial = self._judged(command)
                if denial is not None:
                    return denial
        except commands.NotPlainError as error:
            return _not_plain(error, command)
        except (commands.UnreadableError, TooManyError) as error:
            return _refusal(
                "shell.unreadable",
                f"The command cannot be read: {error}.",
                _advice(error) or "Write it plainer: one valid bash command, or several calls.",
                reason=str(error),
            )
        except commands.NoParserError:
            return _refusal(
                "shell.unreadable",
                "Commands cannot be read here: the parser is not installed.",
                f"Tell the user what installs it: `{install('shell')}`.",
                reason="the parser is not installed",
            )
        return None

    def _read(self, command: str | list[str]) -> "tuple[Found | None, Found | None]":
        """
        Returns the commands that *command* would run, as *allow* and as *deny* are held against them. Returns None if
        there is none of them.
        """
        from guardrails.core import commands

        listed = commands.plainly(command) if self.allow else None
        return listed, None if self.allow and not self.deny else commands.walk(command)

    def _judged(self, command: str | list[str]) -> Denial | None:
        from guardrails.core import commands

        listed, found = self._read(command)
        broken = None if found is None else commands.rules(self.deny).broken(found.commands)
        if broken is not None:
            return _denied(broken[0], broken[1].text)
        if found is not None and found.fork_bomb is not None:
            return _refusal(
                "shell.fork_bomb",
                f"The command starts processes without end: {found.fork_bomb}.",
                "Start a fixed number of processes, and wait for them.",
            )
        for each in () if listed is None else listed.commands:
            if not any(commands.allows(commands.rule(said), each) for said in self.allow):
                return _not_allowed(" ".join(each.words), self._allowed_are(each.words[0]))
        return self._decided([doubt for each in (listed, found) if each is not None for doubt in each.doubts])

    def _allowed_are(self, program: str) -> str:
        """
        Returns the rules that are nearest to a command of *program*: those for it, else all.
        """
        own = [f"`{said}`" for said in self.allow if said.split(" ")[0] == program]
        if own:
            return f"Of `{program}` these are allowed: {', '.join(own[:_NAMED])}."
        return f"Allowed are: {', '.join(f'`{said}`' for said in self.allow[:_NAMED])}."

    def _decided(self, doubts: list[str]) -> Denial | None:
        if not doubts or self.undecidable == "allow":
            return None
        return _refusal(
            "shell.undecidable",
            f"The command was not run: {doubts[0]}.",
            "Write the program's name out, or put the commands into a script file, read it, and run that.",
            reason=doubts[0],
        )


def _values(call: ToolCall, tool: Tool, *, plain: bool) -> Iterator[Any]:
    """
    Returns the commands among the arguments; `command+args` are the words of one, from several arguments. If it is
    *plain*, each is read in one way: words that an allow list knows are none in the other.
    """
    yield from (value for _, value in named(call.arguments, tool.commands) if value is not None)
    given = call.arguments
    for name in tool.commands:
        if "+" in name and isinstance(given, Mapping):
            parts = [given[part] for part in name.split("+") if given.get(part) is not None]
            words = [word for part in parts for word in (part if isinstance(part, (list, tuple)) else [part])]
            split = any(isinstance(part, str) for part in parts[1:])
            whole = parts[:1] if parts and isinstance(parts[0], str) else []
            # The first may be a whole command by itself; with what follows it is a program.
            if not plain or parts == whole or (whole and not _NAME.fullmatch(parts[0])):
                yield from whole
            if not plain or not (split or parts == whole):
                yield words
            if split:
                # Text behind a program is for a shell to split.
                yield " ".join(str(word) for word in words)


def _command(value: Any) -> str | list[str]:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return list(value)
    from guardrails.core.commands import UnreadableError

    raise UnreadableError(
        "it is neither text nor a list of words", 'write it as one text, or as a list of texts: a number as `"5"`'
    )


def _denied(command: "Command", said: str) -> Denial:
    shown = _shown(" ".join(command.words))
    return _refusal(
        "shell.deny",
        f"`{shown}` is not to be run here (rule `{said}`).",
        "Reach the goal in another way: name the exact files inside the workspace, or ask the user to run it.",
        command=shown,
        rule=said,
    )


def _not_allowed(command: str, hint: str) -> Denial:
    shown = _shown(command)
    said = f"`{shown}` is not allowed here: it is not among the allowed commands."
    return _refusal("shell.allow", said, hint, command=shown)


def _not_plain(error: "UnreadableError", command: str | list[str]) -> Denial:
    shown = _shown(command if isinstance(command, str) else " ".join(command))
    said = f"`{shown}` is no plain command, and only plain ones are allowed here: {error}."
    return _refusal("shell.allow", said, _advice(error), command=shown)


def _advice(error: "UnreadableError | TooManyError") -> str:
    from guardrails.core.commands import UnreadableError

    said = error.advice if isinstance(error, UnreadableError) else None
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _shown(text: str) -> str:
    text = text.replace("\x00", "…")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _refusal(code: str, message: str, hint: str, **values: object) -> Denial:
    return Denial(code=code, message=message, hint=hint, details={"error_type": "permission"}, values=values)
