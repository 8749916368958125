"""
The last calls of one session, as far as the next one is compared with them.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guardrails.core.values.types import WITHOUT_EFFECT
from guardrails.offline.judge.evidence import WINDOW, Past

from .tally import Tally


CORRECTED_WITHIN: Final = 5
"""Calls after a validation error among which its correction is looked for."""


class Done(NamedTuple):
    """
    A call that ran.
    """

    tool: str
    sig: int | None
    result_hash: int | None
    """The evidence; None: nobody knows."""
    error: str | None
    attempt: int
    """Failures of this very call in a row, this one included; 0: it worked, or nobody knows."""
    changes: bool
    """It is not known to change nothing."""
    undeclared: bool = False
    """The policy does not say whether it changes anything."""
    did: bool = False
    """It may have done something new: it worked, is not known or named to read only, and repeated nothing for nothing."""

    @property
    def status(self) -> str:
        """
        As of an entry of a session.
        """
        return "ok" if self.error is None else "error"

    @property
    def worked(self) -> bool:
        """
        Whether it may have changed something, as far as its end tells.
        """
        return self.changes and self.error not in WITHOUT_EFFECT


class Wrong(NamedTuple):
    """
    A call whose arguments were wrong.
    """

    number: int
    sig: int | None


@dataclass(slots=True)
class Trail:
    """
    One session: at most 20 calls, and open corrections for at most as many tools.
    """

    number: int = 0
    """Calls so far, denied ones included."""
    past: Past = field(default_factory=Past)
    done: list[Done] = field(default_factory=list)
    kept: list[Done] = field(default_factory=list)
    """Those that the rule `evidence` would have let run."""
    sigs: list[int | None] = field(default_factory=list)
    """Of *done*: looked through first, since most calls repeat none."""
    kept_sigs: list[int | None] = field(default_factory=list)
    wrong: dict[str, Wrong] = field(default_factory=dict)
    """The validation error of each tool that is not corrected yet."""
    tools: set[str] = field(default_factory=set)
    """That the session was counted for."""
    repeated: set[str] = field(default_factory=set)
    polled: set[str] = field(default_factory=set)
    """Those that brought something after equal results."""
    steady: set[int | None] = field(default_factory=set)
    """Calls whose latest results were equal, with nothing changed in between."""
    looping: dict[int | None, tuple[bool, bool]] = field(default_factory=dict)
    """Calls of which the latest was idle; whether tokens, and a duration, were known of one of them."""
    turn: int | None = None
    """The latest model response."""
    told: bool = False
    """Whether its tokens are known."""
    spent: tuple[Tally, int] | None = None
    """Where its tokens are counted, and how many: all its calls are idle so far."""

    def latest(self, sig: int | None) -> int | None:
        """
        Returns the place of the latest call of *sig*. Returns None if there is none.
        """
        if sig is not None and sig in self.sigs:
            for place in range(len(self.done) - 1, -1, -1):
                if self.done[place].sig == sig:
                    return place
        return None

    def ran(self, done: Done, *, kept: bool) -> None:
        """
        Note a call that ran; *kept*: also under the rule `evidence`.
        """
        self.done.append(done)
        self.sigs.append(done.sig)
        if len(self.done) > WINDOW:
            del self.done[0], self.sigs[0]
        if kept:
            self.kept.append(done)
            self.kept_sigs.append(done.sig)
            if len(self.kept) > WINDOW:
                del self.kept[0], self.kept_sigs[0]

    def went_wrong(self, tool: str, sig: int | None) -> None:
        """
        Note a call with wrong arguments.
        """
        if len(self.wrong) >= WINDOW and tool not in self.wrong:
            del self.wrong[next(iter(self.wrong))]
        self.wrong[tool] = Wrong(self.number, sig)

    def correction(self, tool: str, sig: int | None) -> bool:
        """
        Returns whether a call of *tool* corrects the one that went wrong; that one is done with.
        """
        wrong = self.wrong.pop(tool, None)
        return wrong is not None and self.number - wrong.number <= CORRECTED_WITHIN and wrong.sig != sig
