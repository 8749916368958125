"""
The options of the command `guardrails hook`. It imports os only: a hook's process pays for each module with every call.
"""

import os

from guardrails.policy.reload import whole
from guardrails.stores.places import is_url, shown_place, whole_place


CLIENTS = ("claude", "codex", "gemini")
_WORDS = ("client", "policy", "store", "records", "user", "tenant")
"""Options with a value."""


class Options:
    """
    The options by which events are answered; two that say the same are equal. Paths are whole: made so by the process
    that is told them.
    """

    __slots__ = ("client", "observe", "policy", "records", "store", "tenant", "user")

    def __init__(
        self,
        *,
        client: "str | None" = None,
        policy: str = "default",
        store: "str | None" = None,
        records: "str | None" = None,
        observe: bool = False,
        user: "str | None" = None,
        tenant: "str | None" = None,
    ) -> None:
        if client is not None and client not in CLIENTS:
            raise ValueError(f"unknown client `{client}`: use {', '.join(CLIENTS)}")
        self.client = client
        """Who asks, of `CLIENTS`; None: seen by the event."""
        self.policy = whole(policy)
        """A shipped name, or the path of a file."""
        self.store = None if store is None else whole_place(store)
        """The file of the sessions' states, or the URL of a server; None: `default_store()`."""
        self.records = None if records is None else os.path.abspath(records)  # noqa: PTH100  pathlib takes 5 ms
        """A file of JSON lines; None: no records, or with *observe* those beside the store."""
        self.observe = observe
        """Decide and record, and say nothing."""
        self.user = user
        self.tenant = tenant
        """Whose session it is, where the policy limits users or tenants."""

    @classmethod
    def of(cls, words: "list[str]") -> "Options":
        """
        The options of the words of a command line. Raises ValueError for what is none.
        """
        said: dict[str, str] = {}
        observe = False
        rest = iter(words)
        for word in rest:
            name, equals, value = word.removeprefix("--").partition("=")
            if word == "--observe":
                observe = True
            elif word.startswith("--") and name in _WORDS:
                given = value if equals else next(rest, None)
                if not given or "\0" in given:
                    raise ValueError(f"--{name} needs a value")
                said[name] = given
            else:
                raise ValueError(f"unknown option `{word}`")
        return cls(observe=observe, **said)

    def words(self) -> "list[str]":
        """
        The words of a command line that say these options.
        """
        said = [(name, getattr(self, name)) for name in _WORDS]
        return [f"--{name}={value}" for name, value in said if value is not None] + ["--observe"] * self.observe

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self.words() == other.words()

    def __hash__(self) -> int:
        return hash(tuple(self.words()))

    def __repr__(self) -> str:
        return f"Options({' '.join(map(shown_place, self.words()))})"

    @property
    def store_path(self) -> str:
        """
        The file of the states, absolute, or the URL of their server.
        """
        return self.store or default_store()

    @property
    def records_path(self) -> "str | None":
        """
        The file of the records, absolute. Returns None if there are none.
        """
        if self.records:
            return self.records
        if not self.observe:
            return None
        beside = self.store_path if not is_url(self.store_path) else default_store()
        return f"{os.path.splitext(beside)[0]}.jsonl"  # noqa: PTH122


def default_store() -> str:
    """
    `guardrails/hooks.db` in the folder where this user's programs keep their state.
    """
    from guardrails.stores.places import state_folder

    return os.path.join(state_folder(), "hooks.db")  # noqa: PTH118
