"""
The options of the command `guardrails hook`.
"""

import os

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

from guardrails.policy.reload import whole
from guardrails.stores.places import is_url, shown_place, state_folder, whole_place


CLIENTS: Final = ("claude", "codex", "gemini")
_VALUES: Final = ("client", "policy", "store", "records", "user", "tenant")


class Options(NamedTuple):
    """
    The options by which events are answered. Paths are whole, so that they mean the same in every folder.
    """

    client: str | None = None
    """Who asks, of `CLIENTS`; None: seen by the event."""
    policy: str = "default"
    """A shipped name, or the path of a file."""
    store: str | None = None
    """The file of the sessions' states, or the URL of a server; None: `hooks.db` in the folder of the user's states."""
    records: str | None = None
    """A file of JSON lines; None: no records, or with *observe* those beside the store."""
    user: str | None = None
    tenant: str | None = None
    """Whose session it is, where the policy limits users or tenants."""
    observe: bool = False
    """Decide and record, and say nothing."""
    wrong: str | None = None
    """Why the words are no options of ours. Such options are as good as a policy that cannot be used."""

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """
        The options of the *words* of a command line.
        """
        made: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            name, equals, value = word.removeprefix("--").partition("=")
            known = word.startswith("--") and name in _VALUES
            value = value if equals or not known else next(rest, "")
            if word == "--observe":
                made["observe"] = True
            elif known and value and (name != "client" or value in CLIENTS):
                made[name] = value
            else:
                made["wrong"] = f"unknown option, or one without a value that it may have: `{word}`"
        for name, complete in (("policy", whole), ("store", whole_place), ("records", whole_place)):
            if name in made:
                made[name] = complete(made[name])
        return cls(**made)

    def words(self) -> list[str]:
        """
        The words of a command line that say these options.
        """
        given = [(name, getattr(self, name)) for name in _VALUES]
        return [f"--{name}={value}" for name, value in given if value is not None] + ["--observe"] * self.observe

    def __repr__(self) -> str:
        return f"Options({' '.join(map(shown_place, self.words()))})"

    @property
    def store_path(self) -> str:
        """
        The file of the states, absolute, or the URL of their server.
        """
        return self.store or default_store()

    @property
    def records_path(self) -> str | None:
        """
        The file of the records, absolute. Returns None if there are none.
        """
        return self.records or (f"{self.state_file.removesuffix('.db')}.jsonl" if self.observe else None)

    @property
    def state_file(self) -> str:
        """
        The file of the states, also where a server keeps them: what this machine keeps by itself is beside it.
        """
        return default_store() if is_url(self.store_path) else self.store_path


def default_store() -> str:
    """
    `guardrails/hooks.db` in the folder where this user's programs keep their state.
    """
    return os.path.join(state_folder(), "hooks.db")
