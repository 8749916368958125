"""
The parts of an explanation.
"""

from dataclasses import dataclass
from typing import Final, Literal


Kind = Literal["denial", "nudge", "end", "failure", "status"]

AGAIN: Final = "No. The same call is refused again."
LATER: Final = "Yes, after `retry_after_ms`. The wait is no strike."
OTHERWISE: Final = "Not the same call. One with other arguments is judged anew."
OVER: Final = "No. The session is over until somebody extends it: `session.extend(...)`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """
    One code in plain words, for a person who has met it.

    `$name` in *told* stands for a number or a name. *loosen* and *off* are lines of a policy file.
    """

    code: str
    when: str
    """When it is said, as a clause: what the table of its page has."""
    means: str
    """The same in sentences, with the reason."""
    told: str
    """The text that the model reads."""
    retry: str
    """Whether the same call may work later."""
    settings: tuple[str, ...] = ()
    """The settings that decided, by their place in a policy file; those of a `tools:` rule begin with `tools.`."""
    loosen: str = ""
    off: str = ""
    instead: str = ""
    """The way to change it if no setting does."""
    page: str
    """Of the documentation, below `docs/`."""
    kind: Kind = "denial"
    status: str = "denied"
    """Of the envelope."""
