"""
Calls that are made again until something has happened, told from names and arguments; and tools whose good news is to
find nothing.
"""

import re

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from guardrails.core.repetition.sketch import LABELS
from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ToolCall

from .looks import script_waits, words_wait
from .programs import SERVICES, SLEEPERS
from .verbs import is_live


Command = str | tuple[str, ...]
"""The text of a script, or the words of one command."""

_WAITS: Final = pattern(
    r"(?:^|[_./-])(?:wait|poll|sleep|status|state|progress|check|await|tail|watch|ping|health)(?:$|[_./-])"
    r"|(?:Status|Wait|Poll|Sleep|Progress|Output)(?:$|[A-Z_])"
    r"|^(?:write_stdin|read_bash|read_output|get_output|read_process)$"
)
"""Names of tools that are asked again until something has happened."""
_COMMANDS: Final = pattern(
    r"(?:^|[_-])(?:command|cmd|cmdline|shell|bash|argv|program|executable|binary)(?:s|$|[_-]|[A-Z])"
    r"|(?:Command|Cmd|Shell|Argv)(?:s|$|[A-Z])"
)
"""Names of arguments that hold a command."""
_PARAMETERS: Final = frozenset({"args", "arguments", "params", "parameters"})
"""Names of arguments that hold the words behind a program that another argument, or the tool, names."""
_SHELLS: Final = pattern(
    r"(?:^|[_./-])(?:bash|shell|sh|zsh|cmd|exec|terminal|console|powershell|pwsh)(?:$|[_./-])"
    r"|(?:Shell|Bash)(?:$|[A-Z])"
)
"""Names of tools that run commands."""
_CODE_RUNNERS: Final = pattern(
    r"(?:^|[_./-])(?:i?python|node|javascript|js|code|interpreter|repl|notebook|jupyter)[\d.]*(?:$|[_./-])|(?:Python|Code)(?:$|[A-Z])"
)
"""Names of tools that run code."""
_INPUTS: Final = frozenset({"code", "input", "text", "chars", "source", "script"})
"""Names of arguments that hold a command, or code, if the tool runs these."""
_CODE: Final = frozenset({"code", "script"})
_PROSE: Final = frozenset(
    {"query", "q", "question", "prompt", "message", "title", "content", "pattern", "search", "regex"}
)
"""Names of arguments that speak of commands, if they do at all, and never hold one."""
_HINT: Final = pattern(
    r"(?:^|[;&|(])\s*+(?:(?:sudo|\w+=\S*)\s++)*+"
    rf"(?:{'|'.join(map(re.escape, sorted(SERVICES | SLEEPERS, key=len, reverse=True)))})(?:\s|$)"
)
HEAD: Final = 2048
"""Characters of a command that are read."""
LINE: Final = 512
"""Characters of an argument that may be a command though no name says so."""
VALUES: Final = 16
"""Arguments of a call that are searched, and commands of a list."""
_INSPECTS: Final = pattern(r"lint|diagnos|validat|verif|audit|type_?check|get_?errors", re.IGNORECASE)
"""Names of tools that are pleased with what they look at if they bring nothing."""


@lru_cache(maxsize=1024)
def waits(tool: str) -> bool:
    """
    Returns whether *tool*, by its name, is one that is called again until something has happened.
    """
    return _WAITS.search(tool) is not None


def sleeps(arguments: Any, tool: str = "") -> bool:
    """
    Returns whether a call of *tool* is a command that is made again until something has happened. The command sleeps,
    or looks at a thing that changes by itself or is somewhere else.
    """
    if type(arguments) is str:
        return _runs_commands(tool) and _waits(arguments[:HEAD])
    return type(arguments) is dict and any(map(_waits, _commands(arguments, tool)))


def waits_itself(call: ToolCall) -> bool:
    """
    Returns the answer of `sleeps` for *call*, found out once: several guards ask. The answer is noted in the call.
    """
    return call.note_waits(waits=sleeps(call.arguments, call.tool)) if call.waits is None else call.waits


def runs_commands(tool: str, arguments: Any) -> bool:
    """
    Returns whether a call of *tool* runs a command, by the name of the tool or of one of the *arguments*.
    """
    keys = islice(arguments, VALUES) if type(arguments) is dict else ()
    return _runs_commands(tool) or any(type(key) is str and _holds_command(key) for key in keys)


def runs_code(tool: str, arguments: Any) -> bool:
    """
    Returns whether a call of *tool* runs code, by the name of the tool or of one of the *arguments*.
    """
    return _runs_code(tool) or (type(arguments) is dict and not arguments.keys().isdisjoint(_CODE))


def _commands(arguments: dict[Any, Any], tool: str) -> Iterator[Command]:
    """
    Returns the commands that *arguments* may hold, in themselves and in what they hold.
    """
    program: Any = None
    parameters: Any = None
    for key, value in islice(arguments.items(), VALUES):
        if type(key) is not str or key in LABELS or key in _PROSE:
            continue
        if type(value) is dict:
            yield from _commands({k: v for k, v in islice(value.items(), VALUES) if type(v) is not dict}, tool)
        elif key in _PARAMETERS:
            parameters = value
        elif _holds_command(key) or (key in _INPUTS and _runs_commands(tool)):
            program = value
            yield from _told(value)
        elif key in _INPUTS and type(value) is str and _runs_code(tool):
            yield ("python", "-c", value[:HEAD])
        elif type(value) is str and len(value) <= LINE and "\n" not in value.strip():
            if _HINT.search(value) is not None:
                yield value
            elif value.startswith(("http://", "https://")) and " " not in value and is_live(value):
                method = arguments.get("method")
                yield ("curl", "-X", method if type(method) is str else "GET", value)
    named = _service(tool)
    if parameters is not None or named:
        words = _words(program)
        yield (*(() if words[: len(named)] == named else named), *words, *_words(parameters))


@cached_if_short(256)
def _holds_command(key: str) -> bool:
    return _COMMANDS.search(key) is not None


@lru_cache(maxsize=1024)
def _runs_commands(tool: str) -> bool:
    return _SHELLS.search(tool) is not None


@lru_cache(maxsize=1024)
def _runs_code(tool: str) -> bool:
    return _CODE_RUNNERS.search(tool) is not None


@lru_cache(maxsize=1024)
def _service(tool: str) -> tuple[str, ...]:
    """
    Returns the program that *tool* is named for, if it is a known one: `mcp__k8s__kubectl`.
    """
    name = re.split(r"[_./:]", tool)[-1].lower()
    return (name,) if name in SERVICES else ()


def _told(value: Any) -> Iterator[Command]:
    """
    Returns the commands in the *value* of an argument that holds one, or several.
    """
    if type(value) is str:
        yield value[:HEAD]
    elif type(value) is list and value and all(type(item) is str for item in value[:VALUES]):
        # `["ls", "-l"]` is one command, `["ls -l", "ps"]` are two.
        if " " in value[0]:
            yield from (item[:HEAD] for item in value[:VALUES])
        else:
            yield _words(value)


def _words(value: Any) -> tuple[str, ...]:
    if type(value) is str:
        return tuple(value[:HEAD].split())
    return tuple(word[:HEAD] for word in value[:64] if type(word) is str) if type(value) is list else ()


@lru_cache(maxsize=256)
def _waits(command: Command) -> bool:
    return script_waits(command) if type(command) is str else words_wait(command)


@lru_cache(maxsize=1024)
def inspects(tool: str) -> bool:
    """
    Returns whether it is good news, by its name, that *tool* finds nothing.
    """
    return _INSPECTS.search(tool) is not None
