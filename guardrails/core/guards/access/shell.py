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

from .listed import NOT_LISTED, allowed_are, refused


if TYPE_CHECKING:
    from guardrails.core.commands import Command, Found, UnreadableError
    from guardrails.core.commands.language import Judged

# A policy that names no command does without the reading of commands: `commands` is imported where it is used.


def command_rule(text: object) -> object:
    """
    Returns *text* if it is no text, or a rule about commands. Raises ValueError for other text.
    """
    from guardrails.core import commands

    if isinstance(text, str):
        commands.rule(text)
    return text


def safe_program(text: object) -> object:
    """
    Returns *text* if it is no text, or a program that there are rules for. Raises ValueError for other text.
    """
    from guardrails.core.commands.programs import NAMES

    if isinstance(text, str) and text not in NAMES:
        raise ValueError(f"there are no rules for `{text[:_SHOWN]}`, only for {', '.join(NAMES)}")
    return text


CommandRule = Annotated[str, FromText(command_rule, {"type": "string", "minLength": 1})]
SafeProgram = Annotated[str, FromText(safe_program, {"type": "string", "minLength": 1})]

_SHOWN = 80
_NAME = pattern(r"[A-Za-z0-9_./+-]+")


@guard
class Shell(Guard):
    """
    Read the commands that a tool declares (`commands: [command]`) as a shell would, and deny those that would run what
    *deny* speaks of.

    Pipes, lists, substitutions, wrappers (`sh -c`, `env`, `xargs`, `find -exec`, ...) and quoting are seen through. A
    command that cannot be read, and a fork bomb, are always denied. A denylist stops accidents, not an attacker: see
    docs/guards/shell.md.

    If *allow* or *safe* is given, anything that they do not speak of is denied. So is any text but plain commands:
    words and quotes with no expansion, and `|`, `&&`, `||`, `;` between commands.
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
    """Rules; empty allows every command that is not denied, if *safe* is empty as well."""
    safe: tuple[SafeProgram, ...] = ()
    """Programs whose commands are allowed as far as they only read and start nothing: `git`, `rg`, `ls`, ..."""
    undecidable: Literal["deny", "allow"] = "deny"
    """The answer if the program that would run is known only at run time (`$X -rf /`, `curl ... | sh`, `eval "$X"`)."""

    def applies(self, tool: Tool) -> bool:
        return bool(tool.commands)

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        from guardrails.core import commands

        # It asks for none; but reading a hostile command may take seconds, which must not pass while the state is locked.
        with suppress(commands.UnreadableError, TooManyError, commands.NoParserError):
            for value in _values(call, tool, plain=self.is_list):
                with suppress(commands.UnreadableError):
                    self._read(_command(value), tool)
        return ()

    def check(self, call: ToolCall, state: SessionState, facts: Facts) -> Verdict:
        from guardrails.core import commands

        try:
            for value in _values(call, facts.tool, plain=self.is_list):
                command = _command(value)
                denial = self._judged(command, facts.tool)
                if denial is not None:
                    return denial
        except commands.NotListedError as error:
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

    def _read(self, command: str | list[str], tool: Tool) -> "tuple[Found | Judged | None, Found | None]":
        """
        Returns the commands that *command* would run, as *allow* and as *deny* are held against them. Returns None if
        there is none of them.
        """
        from guardrails.core import commands

        listed: Found | Judged | None = None
        if self.is_list and tool.by_argv and isinstance(command, str):
            from guardrails.core.commands.language import judged, read

            listed = judged(read(command))
        elif self.is_list:
            listed = commands.plainly(command)
        return listed, None if self.is_list and not self.deny else commands.walk(command)

    def _judged(self, command: str | list[str], tool: Tool) -> Denial | None:
        from guardrails.core import commands

        listed, found = self._read(command, tool)
        broken = None if found is None else commands.rules(self.deny).broken(found.commands)
        if broken is not None:
            return _denied(broken[0], broken[1].text)
        if found is not None and found.fork_bomb is not None:
            return _refusal(
                "shell.fork_bomb",
                f"The command starts processes without end: {found.fork_bomb}.",
                "Start a fixed number of processes, and wait for them.",
            )
        allowed = None if listed is None else self._allowed(listed)
        return allowed or self._decided(
            [doubt for each in (listed, found) if each is not None for doubt in each.doubts]
        )

    @property
    def is_list(self) -> bool:
        """
        Whether only what it lists may run.
        """
        return bool(self.allow or self.safe)

    def _allowed(self, found: "Found | Judged") -> Denial | None:
        from guardrails.core import commands

        if not isinstance(found, commands.Found):
            refusal = refused(found, self.allow, self.safe, self._unsafe)
            return None if refusal is None else _not_allowed(*refusal)
        for command in found.commands:
            if not any(commands.allows(commands.rule(said), command) for said in self.allow):
                reason, advice = self._unsafe(command)
                if reason is not None:
                    hint = advice or allowed_are(self.allow, self.safe, command.words[0])
                    return _not_allowed(" ".join(command.words), reason or NOT_LISTED, hint)
        return None

    def _unsafe(self, command: "Command") -> tuple[str | None, str]:
        """
        Returns the reason why *command* does more than read by a program of *safe*, and the text to write in its place.
        The reason is None if it only reads, "" if it is of another program.
        """
        if not self.safe:
            return "", ""
        from guardrails.core.commands import programs

        if programs.program_of(command.words) not in self.safe:
            return "", ""
        refused = programs.reads_only(command.words, command.globs, among=self.safe)
        if refused is None:
            return None, ""
        return refused.reason, f"{refused.advice[:1].upper()}{refused.advice[1:]}." if refused.advice else ""

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


def _not_allowed(command: str, reason: str, hint: str) -> Denial:
    shown = _shown(command)
    return _refusal("shell.allow", f"`{shown}` is not allowed here: {reason}.", hint, command=shown)


def _not_plain(error: "UnreadableError", command: str | list[str]) -> Denial:
    shown = _shown(command if isinstance(command, str) else " ".join(command))
    from guardrails.core.commands import NotPlainError

    plain = "is no plain command, and only plain ones are allowed here"
    return _refusal(
        "shell.allow",
        f"`{shown}` {plain if isinstance(error, NotPlainError) else 'cannot be run here'}: {error}.",
        _advice(error),
        command=shown,
    )


def _advice(error: "UnreadableError | TooManyError") -> str:
    from guardrails.core.commands import UnreadableError

    said = error.advice if isinstance(error, UnreadableError) else None
    return f"{said[0].upper()}{said[1:]}." if said else ""


def _shown(text: str) -> str:
    text = text.replace("\x00", "…")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _refusal(code: str, message: str, hint: str, **values: object) -> Denial:
    return Denial(code=code, message=message, hint=hint, details={"error_type": "permission"}, values=values)
