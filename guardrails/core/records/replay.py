"""
Decide again what was recorded: the offline shell around the same engine.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from guardrails.core.chain import Chain
from guardrails.core.state import SessionState
from guardrails.core.values.errors import SessionError

from .life import ALONE, NO_OTHERS, Beside, Life, Replayed, Rules
from .order import LifeKey, Stream, in_order, kin, life_key, root_of, shares
from .recorded import WRONG, Record, no_good


def replay_together(
    chain: Chain,
    records: Iterable[Record],
    *,
    scopes: Mapping[str, Chain] | None = None,
    others: Mapping[str, Rules] = NO_OTHERS,
) -> Iterator[Replayed]:
    """
    Decides the calls of sessions that share something again, from the records of all of them, in their order. They are
    sessions of one scope (*scopes* as a policy has them), or a session and its children. All are held in memory.
    *others* as `replay` takes them.

    Raises SessionError if a number of a session, a scope or a family is missing, since the events there are not known.
    A value that is no record raises it too.
    """
    states = _States(chain, scopes or {}, others)
    try:
        for record in in_order(sorted(records, key=lambda record: (*life_key(record), record["n"]))):
            made = states.life(*life_key(record)).live(record, states.beside(record))
            if made is not None:
                yield made
    except WRONG as error:
        raise no_good(error) from error


class _States:
    """
    The lives of sessions, and the scopes of a policy by name, with the states that records have brought them to.
    """

    def __init__(self, whole: Chain, chains: Mapping[str, Chain], others: Mapping[str, Rules]) -> None:
        self._whole = whole
        self._others = others
        self.chains = chains
        self._lives: dict[LifeKey, Life] = {}
        self.scopes: dict[Stream, SessionState] = {}

    def life(self, session_id: str, run: str) -> Life:
        """
        Returns that life of the session.
        """
        found = self._lives.get((session_id, run))
        if found is None:
            found = self._lives[session_id, run] = Life(session_id, self._whole, SessionState(), self._others)
        return found

    def beside(self, record: Record) -> Beside:
        """
        Returns the scopes and the family in which the event of *record* happened beside its session. Raises
        SessionError if a number is missing, or the policy has no such scope.
        """
        beside = self._scopes_of(record) if "scopes" in record else ALONE
        if "family" not in record:
            return beside
        root = self._root(record)
        if record["family"][2] != root.state.shared + 1:
            raise SessionError(
                f"the records of the family of `{record['session_id']}` have a gap before event {record['n']}"
            )
        return beside._replace(root=root.state)

    def _scopes_of(self, record: Record) -> Beside:
        given = self.life(*life_key(record)).scopes
        chains = self.chains if given is None else given
        present: list[tuple[str, str, Chain]] = []
        states, clocks = [], []
        for name, (own, run, n, now_ms) in record["scopes"].items():
            if name not in chains:
                raise SessionError(f"`{record['session_id']}` is in a scope `{name}`, which the policy does not have")
            state = self.scope(name, own, run)
            if n != state.n + 1:
                raise SessionError(
                    f"the records of the scope `{name}` of `{own}` have a gap before event {n}: those of all its "
                    "sessions are needed"
                )
            present.append((name, own, chains[name]))
            states.append(state)
            clocks.append(now_ms)
        return Beside(tuple(present), tuple(states), tuple(clocks))

    def _root(self, record: Record) -> Life:
        return self.life(root_of(record), record["family"][0])

    def scope(self, name: str, own: str, run: str) -> SessionState:
        """
        Returns the state of the life *run* of the scope *name* of *own*.
        """
        return self.scopes.setdefault(("scope", name, own, run), SessionState())


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
            _begin_again(state)
        again = Life(str(life[0].get("session_id")), chain, state, others)
        for record in life:
            made = again.live(record)
            if made is not None:
                yield made


def _begin_again(state: SessionState) -> None:
    """
    Let a state be as new.
    """
    new = SessionState()
    for field in fields(state):
        setattr(state, field.name, getattr(new, field.name))
