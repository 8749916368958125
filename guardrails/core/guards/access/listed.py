"""
The answers of an allow list to a script that is run by argv: to each program, each file, each variable.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from guardrails.core.commands import Command
    from guardrails.core.commands.language import Judged, Run

Unsafe = Callable[["Command"], tuple[str | None, str]]
NOT_LISTED: Final = "it is not among the allowed commands"
_NAMED: Final = 20


class Refusal(NamedTuple):
    """
    A refusal of a script: the part of it, as text, the reason as a clause, and the step to take instead.
    """

    shown: str
    reason: str
    hint: str


def refused(found: "Judged", allow: Sequence[str], safe: Sequence[str], unsafe: Unsafe) -> Refusal | None:
    """
    Returns why *found* is not allowed by the rules *allow*, and does not only read by the programs *safe*. Returns None
    if it is.

    *unsafe* tells why a command may do more than read, with advice: None if it only reads, "" if nothing is known of it.
    """
    return next(_refusals(found, allow, safe, unsafe), None)


def allowed_are(allow: Sequence[str], safe: Sequence[str], program: str) -> str:
    """
    Returns the rules that are nearest to a command of *program*: those for it, else all.
    """
    own = [f"`{said}`" for said in allow if said.split(" ")[0] == program]
    if own:
        return f"Of `{program}` these are allowed: {', '.join(own[:_NAMED])}."
    names = [f"`{said}`" for said in allow[:_NAMED]]
    if safe:
        names.append(f"what only reads of {', '.join(map('`{}`'.format, safe))}")
    return f"Allowed are: {', '.join(names)}."


def _refusals(found: "Judged", allow: Sequence[str], safe: Sequence[str], unsafe: Unsafe) -> Iterator[Refusal]:
    from guardrails.core.commands.language import is_data, is_harmless, runs

    for variable in found.variables:
        if not is_harmless(variable) and not _fits(allow, (variable,)):
            name = variable.partition("=")[0]
            yield Refusal(
                variable, f"the variable `{name}` is not among those that may be set", f"Leave `{name}=` out."
            )
    for path in found.writes:
        if ".git" in path.lower().split("/"):
            yield Refusal(f"> {path}", "it is a file of git's own", "Use `git` itself.")
        if is_data(path) or _fits(allow, (">", path)):
            continue
        # Its code could be given to the program as it is.
        if not any(_fits(allow, (*words, "code")) for words in runs(path)):
            yield Refusal(
                f"> {path}",
                "only files that are plainly data may be written by a redirection",
                "Write it with a tool for files, or to a file with a name such as `out.txt`.",
            )
    for run in found.runs:
        if run.words[0] == "command":
            # Of it the language has `command -v NAME` only, which starts nothing: we tell it ourselves.
            continue
        for number, command in enumerate(run.commands):
            reads = run.reads if number == 0 else ()
            if _allowed(allow, command, run.folders) and all(_may_read(path, command, allow, run) for path in reads):
                continue
            reason, advice = unsafe(command)
            if reason is not None:
                shown = " ".join(run.words if number == 0 else command.words)
                hint = advice or allowed_are(allow, safe, command.words[0])
                where = next((folder for folder in run.folders if folder != "."), None)
                if where is not None and _allowed(allow, command, (".",)):
                    hint = f"Run it without `cd`, with paths that begin with `{where}/`. {hint}"
                yield Refusal(shown, reason or NOT_LISTED, hint)


def _may_read(path: str, command: "Command", allow: Sequence[str], run: "Run") -> bool:
    """
    Returns whether *command* may read *path* by `<`: a rule says so, or allows it as a word at the end.
    """
    words = (*command.words, f"./{path}" if path.startswith("-") else path)
    return _fits(allow, ("<", path), run.folders) or _fits(allow, words, run.folders)


def _fits(allow: Sequence[str], words: tuple[str, ...], folders: Sequence[str] = (".",)) -> bool:
    from guardrails.core.commands import Command

    return _allowed(allow, Command(words), folders)


def _allowed(allow: Sequence[str], command: "Command", folders: Sequence[str]) -> bool:
    from guardrails.core import commands

    return all(
        any(commands.allows(commands.rule(said), command, by_argv=True, folder=folder) for said in allow)
        for folder in folders
    )
