"""
Decide again what was recorded: the offline shell around the same engine.
"""

from collections.abc import Iterable, Iterator, Mapping

from guardrails.core.engine.chain import Chain
from guardrails.core.state.state import SessionState
from guardrails.core.state.totals import begin_again

from .life import NO_OTHERS, Life, Replayed, Rules
from .order import kin, shares
from .recorded import WRONG, Record, no_good
from .together import replay_together


__all__ = ["Record", "Replayed", "kin", "replay", "replay_together", "shares"]


def replay(
    chain: Chain,
    records: Iterable[Record],
    state: SessionState | None = None,
    *,
    others: Mapping[str, Rules] = NO_OTHERS,
) -> Iterator[Replayed]:
    """
    Decides the calls of one session again from its records, in the order of their numbers.

    Each life of its name (`run`) begins with a new state, in the order in which the records first tell of them. A
    child's limits are in its records, and so are the declarations of its tools. The replay starts at *state*, which holds the
    state at the end. The policies in *others* are those that the session went over to when its own files changed, by
    the names in their records. Without them, that session cannot be replayed. Raises SessionError if a number is
    missing, since the events there are not known, and for a value that is no record.

    The records of a session alone do not tell what it shares with others: scopes, the counters and the work of its
    family. See `replay_together`.
    """
    if state is None:
        state = SessionState()
    lives: dict[str, list[Record]] = {}
    try:
        for record in records:
            lives.setdefault(record["run"], []).append(record)
        ordered = [sorted(life, key=lambda line: int(line["n"])) for life in lives.values()]
    except WRONG as error:
        raise no_good(error) from error
    for index, life in enumerate(ordered):
        if index:
            begin_again(state)
        again = Life(str(life[0].get("session_id")), chain, state, others)
        for record in life:
            made = again.live(record)
            if made is not None:
                yield made
