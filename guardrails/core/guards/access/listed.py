"""
What an allow list says of a script that is run by argv: of each program, each file, each variable.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple


if TYPE_CHECKING:
    from guardrails.core.commands import Command
    from guardrails.core.commands.language import Judged, Run


_NAMED: Final = 20


class Refusal(NamedTuple):
    """
    Why a script is not allowed: what of it, as text, the reason as a clause, and what to do instead.
    """

    shown: str
    reason: str
    hint: str


def refused(found: "Judged", allow: Sequence[str], reads_only: "Callable[[Run], bool]") -> Refusal | None:
    """
    Why *found* is not what the rules *allow* speak of, or what only reads. Returns None if it is.
    """
    return next(_refusals(found, allow, reads_only), None)


def allowed_are(allow: Sequence[str], program: str) -> str:
    """
    The rules that are nearest to a command of *program*: those for it, else all.
    """
    own = [said for said in allow if said.split(" ")[0] == program]
    said = ", ".join(f"`{each}`" for each in (own or allow)[:_NAMED])
    return f"Of `{program}` these are allowed: {said}." if own else f"Allowed are: {said}."


def _refusals(found: "Judged", allow: Sequence[str], reads_only: "Callable[[Run], bool]") -> Iterator[Refusal]:
    from guardrails.core.commands.language import is_data, is_harmless

    for variable in found.variables:
        if not is_harmless(variable) and not _fits(allow, (variable,)):
            name = variable.partition("=")[0]
            yield Refusal(
                variable, f"the variable `{name}` is not among those that may be set", f"Leave `{name}=` out."
            )
    for path in found.writes:
        if not is_data(path) and not _fits(allow, (">", path)):
            yield Refusal(
                f"> {path}",
                "only files that are plainly data may be written by a redirection",
                "Write it with a tool for files, or to a file with a name such as `out.txt`.",
            )
    for run in found.runs:
        if not reads_only(run):
            yield from _run(run, allow)


def _run(run: "Run", allow: Sequence[str]) -> Iterator[Refusal]:
    for number, command in enumerate(run.commands):
        if not _allowed(allow, command, run.folders):
            shown = " ".join(run.words if number == 0 else command.words)
            where = next((folder for folder in run.folders if folder != "."), None)
            hint = allowed_are(allow, command.words[0])
            if where is not None and _allowed(allow, command, (".",)):
                hint = f"Run it without `cd`, from the workspace, with paths that begin with `{where}/`. {hint}"
            yield Refusal(shown, "it is not among the allowed commands", hint)
    for path in run.reads:
        # As a word at the end, for whoever may read it so.
        words = (*run.commands[0].words, path if not path.startswith("-") else f"./{path}")
        if not _fits(allow, ("<", path), run.folders) and not _fits(allow, words, run.folders):
            yield Refusal(
                f"< {path}",
                f"what `{run.words[0]}` may read is listed",
                f"{allowed_are(allow, run.words[0])}",
            )


def _fits(allow: Sequence[str], words: tuple[str, ...], folders: Sequence[str] = (".",)) -> bool:
    from guardrails.core.commands import Command

    return _allowed(allow, Command(words), folders)


def _allowed(allow: Sequence[str], command: "Command", folders: Sequence[str]) -> bool:
    from guardrails.core import commands

    return all(
        any(commands.allows(commands.rule(said), command, by_argv=True, folder=folder) for said in allow)
        for folder in folders
    )
