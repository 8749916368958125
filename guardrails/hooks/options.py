"""
What the command `guardrails hook` is told.
"""

import os

from typing import Final, NamedTuple


CLIENTS: Final = ("claude", "codex", "gemini")


class Options(NamedTuple):
    """
    How events are answered. Paths are those of the process that reads the command line.
    """

    client: str | None = None
    """Who asks, of `CLIENTS`; None: seen by the event."""
    policy: str = "default"
    """A shipped name, or the path of a file."""
    store: str | None = None
    """The file of the sessions' states; None: `default_store()`."""
    records: str | None = None
    """A file of JSON lines; None: no records, or with *observe* those beside the store."""
    observe: bool = False
    """Decide and record, and say nothing."""
    user: str | None = None
    tenant: str | None = None
    """Whose session it is, where the policy limits users or tenants."""

    @property
    def store_path(self) -> str:
        """
        The file of the states, absolute.
        """
        return os.path.abspath(self.store) if self.store else default_store()  # noqa: PTH100  pathlib takes 5 ms

    @property
    def records_path(self) -> str | None:
        """
        The file of the records, absolute. Returns None if there are none.
        """
        if self.records:
            return os.path.abspath(self.records)  # noqa: PTH100
        return f"{os.path.splitext(self.store_path)[0]}.jsonl" if self.observe else None  # noqa: PTH122


def default_store() -> str:
    """
    `guardrails/hooks.db` in the folder where this user's programs keep their state.
    """
    return os.path.join(_state_folder(), "guardrails", "hooks.db")  # noqa: PTH118


def _state_folder() -> str:
    said = os.environ.get("XDG_STATE_HOME")
    if said and os.path.isabs(said):  # noqa: PTH117
        return said
    local = os.environ.get("LOCALAPPDATA")
    if os.name == "nt" and local:
        return local
    return os.path.expanduser("~/.local/state")  # noqa: PTH111
