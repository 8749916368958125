"""
Refuse shell commands by what they would run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from guardrails.core.tool import Tool, TooManyError, named
from guardrails.core.values.schema import Checked, MinLen

from .approve import Approve, ask
from .base import Codes, Denial, Facts, Guard, SessionState, ToolCall, Verdict, guard


if TYPE_CHECKING:
    from guardrails.core.commands import Command, Contents


# A policy that names no command does without the reading of commands: `commands` is imported where it is used.


def command_rule(text: str) -> str:
    """
    Returns *text* if it is a rule about commands, else raises ValueError.
    """
    from guardrails.core import commands

    commands.rule(text)
    return text


CommandRule = Annotated[str, MinLen(1), Checked(command_rule)]
_SHOWN: Final = 80
_INSTEAD: Final = "Reach the goal in another way: name the exact files inside the workspace, or ask the user to run it."


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
    }

    deny: tuple[CommandRule, ...] = ()
    """Rules; stands above *ask* and *allow*. Blind to case."""
    ask: tuple[CommandRule, ...] = ()
    """Rules, read as those of *deny*: a person decides, as `approve` asks. Without one such a command does not run."""
    allow: tuple[CommandRule, ...] = ()
    """Rules; empty allows every command that is not denied."""
    undecidable: Literal["deny", "allow"] = "deny"
    """The answer if the program that would run is known only at run time (`$X -rf /`, `curl ... | sh`, `eval "$X"`)."""

    def applies(self, tool: Tool) -> bool:
        return bool(tool.commands)

    def prepare(self) -> None:
        if self.mode != "off":
            from guardrails.core.commands.syntax import parsers

            parsers()

    def companions(self) -> tuple[Guard, ...]:
        return (Approve(mode=self.mode),) if self.ask else ()

    def paths(self, call: ToolCall, tool: Tool) -> tuple[tuple[str, tuple[str, ...]], ...]:
        # It asks for none; but reading a hostile command takes long, and must not do so while the state is locked.
        list(_read(call, tool))
        return ()

    def check(self, call: ToolCall, state: SessionState, mine: Any, facts: Facts) -> Verdict:
        contents = list(_read(call, facts.tool))
        refusal = next((denial for each in contents for denial in self._refusals(each)), None)
        # What is only tried changes nothing.
        real = (one for each in contents for one in each.commands if "--dry-run" not in " ".join(one.words))
        asked = _broken(self.ask, real)
        if refusal is not None or asked is None:
            return refusal
        return ask(call, state, facts, "`{}` cannot be undone (rule `{}`)".format(*asked))

    def _refusals(self, contents: "Contents") -> Iterator[Denial]:
        from guardrails.core import commands

        if contents.unreadable is not None:
            reason, advice = contents.unreadable
            hint = advice or "Write it plainer: one valid bash command, or several calls."
            yield _refusal("unreadable", "The command cannot be read", reason, hint)
        broken = _broken(self.deny, contents.commands)
        if broken is not None:
            what = "`{}` is not to be run here (rule `{}`)".format(*broken)
            yield _refusal("deny", what, "", _INSTEAD, command=broken[0], rule=broken[1])
        if self.allow and contents.not_plain is not None:
            shown = _shown([word for each in contents.commands[:1] for word in each.words])
            yield _refusal("allow", "Only plain commands are allowed here", *contents.not_plain, command=shown)
        for command in contents.commands if self.allow else ():
            shown, program = _shown(command.words), command.words[0]
            if not any(commands.allows(commands.rule(text), command) for text in self.allow):
                own = [text for text in self.allow if text.split(" ")[0] == program] or self.allow
                hint = f"These are allowed: {', '.join(map('`{}`'.format, own[:20]))}."
                yield _refusal("allow", f"`{shown}` is not among the allowed commands", "", hint, command=shown)
        if contents.fork_bomb:
            hint = "Start a fixed number of processes."
            yield _refusal("deny", "The command starts processes without end", "", hint)
        if contents.undecidable and self.undecidable == "deny":
            hint = "Write the program's name out, or put the commands into a script file, read it, and run that."
            yield _refusal("unreadable", "The command was not run", contents.undecidable, hint)


def _broken(rules: tuple[str, ...], contents: "Iterable[Command]") -> tuple[str, str] | None:
    from guardrails.core import commands

    broken = commands.broken(rules, contents) if rules else None
    return None if broken is None else (_shown(broken[0].words), broken[1])


def _read(call: ToolCall, tool: Tool) -> "Iterator[Contents]":
    """
    Returns what the commands among the arguments would run; `command+args` are the words of one, from several arguments.
    """
    from guardrails.core.commands import Contents, Fault, read

    try:
        for value in _values(call, tool):
            if isinstance(value, str):
                yield read(value)
            elif isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
                yield read(tuple(value)) if value else Contents()
            else:
                yield Contents(unreadable=Fault("it is neither text nor a list of texts", 'Write a number as `"5"`.'))
    except TooManyError as error:
        yield Contents(unreadable=Fault(str(error)))


def _values(call: ToolCall, tool: Tool) -> Iterator[Any]:
    yield from (value for _, value in named(call.arguments, tool.commands) if value is not None)
    given = call.arguments
    for name in (name for name in tool.commands if "+" in name and isinstance(given, Mapping)):
        parts = [given[part] for part in name.split("+") if given.get(part) is not None]
        words = [word for part in parts for word in (part if isinstance(part, (list, tuple)) else [part])]
        if all(isinstance(part, str) for part in (parts if len(words) > 1 else parts[:1])):
            # Text behind a program is for a shell to split.
            yield " ".join(words)
        else:
            # The first may be a whole command by itself.
            yield from [parts[0]] if isinstance(parts[0], str) and " " in parts[0] else []
            yield words


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words).replace("\0", "…")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _refusal(code: str, what: str, why: str = "", hint: str = "", **values: object) -> Denial:
    hint = f"{hint[:1].upper()}{hint[1:]}{'' if hint.endswith('.') or not hint else '.'}"
    message, details = f"{what}: {why}." if why else f"{what}.", {"error_type": "permission"}
    return Denial(f"shell.{code}", message, hint, details=details, values=values or {"reason": why})
