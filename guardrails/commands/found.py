"""
What was found in a script: the commands that it may run, and what nobody can see before it runs.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Command:
    """
    One command that would run.
    """

    words: tuple[str, ...]
    """Expanded, the program first; `(">", FILE)` is a file that is written, `("NAME=value",)` an assignment."""
    directories: tuple[str, ...] = (".",)
    """Where it may run; see `Scope`."""
    previous: "Command | None" = None
    """What is piped into it."""
    hint: bool = False
    """Seen only as text inside the code of another language: for what is forbidden, not for what is allowed."""

    @property
    def name(self) -> str:
        """
        The program without its folder, lowercase.
        """
        name = self.words[0].rpartition("/")[2].lower()
        return name.removesuffix(".exe") or self.words[0]


@dataclass(slots=True)
class Found:
    """
    What a script may run.
    """

    commands: list[Command] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    """What would run that nobody can see before it does."""
    fork_bomb: str | None = None
