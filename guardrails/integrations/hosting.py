"""
The parts that adapters of hosts share: one loop of a host by its requests and responses, and an envelope's notes beside
its value.
"""

import json

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from xxhash import xxh3_64_hexdigest

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.tools.tool_choice import Strategy, ToolChoice
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.hooks.results import beside as remark
from guardrails.session.final_answer import FinalAnswer, Meaning
from guardrails.session.ledger import SHARE
from guardrails.session.session import NO_DIGEST, scoped
from guardrails.session.steps import current_session


if TYPE_CHECKING:
    from guardrails.session.session import Requested, Session

__all__ = ["BROKEN_OFF", "Asking", "calling", "give_back", "lines", "remark", "share_of", "user_asks"]

T = TypeVar("T")

BROKEN_OFF: Final = Envelope.error("cancelled", "this call was broken off before it gave a result")
STORE_CODE: Final = "store.error"
"""Why a final answer is asked for if the state cannot be known."""
MAX_FAILED: Final = 3
"""Requests in a row before which the state could not be read; none of the calls after them would run."""


class Asking:
    """
    One loop of a host, request by request: `ask`, then `take` or `failed`. A store that fails loses no conversation.

    *first* says whether the next request is the first of its loop; with None the first request of this object is.
    The flag *user* says whether a message of the user begins the loop, and not another agent.
    """

    def __init__(self, session: "Session", *, first: bool | None = None, user: bool = True) -> None:
        self.session = session
        self._user = user
        self.final = FinalAnswer(session)
        if first is not None:
            self.final.first = first
        self._asked: Requested | None = None

    @property
    def off(self) -> bool:
        """
        Tools are off for the latest request that was asked about.
        """
        return self.final.code is not None

    def ask(self, requested: ToolChoice = None, *, strategy: Strategy | None = None) -> ToolChoice:
        """
        Say that a model request starts. Returns the value to send as `tool_choice` if the user of the host *requested*
        another, or decides by *strategy*.
        """
        try:
            if self._user and self.final.first and current_session() is None:
                # Where a tool asks a model of its own, no user has sent a message.
                self.session.ledger.go_on()
            self._asked = self.session.request()
            self.final.force(self._asked.code)
            choice = self.final.tool_choice(requested, strategy=strategy)
        except Exception as error:  # noqa: BLE001  whatever a store raises
            failed = _FAILED[self.session] = _FAILED.get(self.session, 0) + 1
            log.error("store failed: %s", error, extra={"session": self.session.id})
            if failed >= MAX_FAILED:
                self.final.force(STORE_CODE)
            return "none" if self.off else requested
        _FAILED.pop(self.session, None)
        return choice

    def failed(self) -> None:
        """
        Say that the request came to nothing: what it held comes back.
        """
        if self._asked is not None:
            self._known(self._asked.release, None)
            self._asked = None

    def take(self, text: str | None, calls: int | Sized = 0, **told: Any) -> Meaning:
        """
        Charge a response, and say what it means; see `FinalAnswer.take` for that, and `charge` for what else is *told*.
        """
        meaning = self.final.take(text, calls)
        self.charge(calls=calls if isinstance(calls, int) else len(calls), **told)
        return meaning

    def charge(self, *, calls: int = 0, model: str = "", usage: object = None, **told: Any) -> None:
        """
        Charge the response of *model*, as `Session.charge` does: its `key` tells it from all others, its `provider` says
        what it costs, and one that is not `whole` broke off.
        """
        told |= {"calls": calls, "model": model, "request": self._asked}
        try:
            self.session.charge(usage=usage, **told)
        except SessionError as error:
            # What it says it used is no usage: it counts as a response that does not say.
            log.error("the usage of a response cannot be read: %s", error, extra={"session": self.session.id})
            self._known(lambda: self.session.charge(**told), None)
        except Exception as error:  # noqa: BLE001
            log.error("store failed: %s", error, extra={"session": self.session.id})
        self._asked = None

    def refusal(self, tool: str, arguments: Any, *, id: str | None = None) -> Envelope:
        """
        Returns the refusal that a call reads after the final answer was asked for.
        """
        unknown = Envelope("limit_reached", code=self.final.code, message=NO_DIGEST)
        return self._known(lambda: self.final.refusal(tool, arguments, id=id), unknown)

    @property
    def digest(self) -> str:
        """
        The calls and their results as text: the answer if the model gives none.
        """
        return self.session.digest()

    @property
    def answer(self) -> str | None:
        """
        The answer that ends the loop: the model's, or the session's digest. None while it goes on.
        """
        return self.digest if self.final.ended == "digest" else self.final.text

    def _known(self, look: Callable[[], T], otherwise: T) -> T:
        try:
            return look()
        except Exception as error:  # noqa: BLE001
            log.error("store failed: %s", error, extra={"session": self.session.id})
            return otherwise


_FAILED: "WeakKeyDictionary[Session, int]" = WeakKeyDictionary()
"""Of sessions whose state could not be read before their last request: how often in a row."""


def calling(session: "Session", tool: Tool, passes: Iterable[type[BaseException]] = ()) -> "Session":
    """
    Returns *session* for a call of *tool*, with the exceptions that it *passes*. Another agent of the session may have
    another tool of that name at the same time.
    """
    session.calls.declare(tool)
    spec = tool.arguments()
    return scoped(session, {} if spec is None else {tool.name: spec}, passes=passes)


def user_asks(session: "Session") -> None:
    """
    Say that the user has sent a further message. A store that fails loses no conversation: the next request says so.
    """
    try:
        session.ledger.go_on()
    except Exception as error:  # noqa: BLE001  whatever a store raises
        log.error("store failed: %s", error, extra={"session": session.id})


def share_of(session: "Session", name: str | None = None, **amounts: Any) -> "Session | None":
    """
    A child of *session* for an agent that a call of it runs, with *amounts* as `child` takes them, by default a share that
    grows. It has the *name*; if that is used up, or not said, one of its own.

    Returns None if so little is left that no part of it can be held, or the store fails: *session* itself holds then.
    """
    for own in (name, uuid4().hex if name is None else f"{name}-{uuid4().hex}"):
        try:
            if own is not None:
                return session.child(session_name(own), **(amounts or {"share": SHARE}))
        except Exception as error:  # noqa: BLE001  whatever a store raises
            if not isinstance(error, SessionError):
                log.error("store failed: %s", error, extra={"session": session.id})
    return None


async def ashare_of(session: "Session", **amounts: Any) -> "Session | None":
    """
    The same without a name, awaited: nothing of it stays held if this task is cancelled.
    """
    made: list[Session | None] = []
    try:
        await session.ledger.off_loop(lambda: made.append(share_of(session, **amounts)))
    except BaseException:
        for child in filter(None, made):
            await child.ledger.off_loop(give_back, child)
        raise
    return made[0]


def give_back(child: "Session", *, forget: bool = False) -> None:
    """
    Close *child*, whose agent has answered, and *forget* it: a store that fails loses no answer.
    """
    try:
        child.close()
        if forget:
            child.ledger.forget()
    except Exception as error:  # noqa: BLE001  whatever a store raises
        log.error("store failed: %s", error, extra={"session": child.id})


def lines(pieces: Iterable[Any]) -> str:
    """
    Returns the *pieces* of a result as a session reads them, one a line: one result, not a list of results. An image is
    its kind and a mark that tells it from others.
    """
    return "\n".join(map(_line, pieces))


def _line(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    kind = piece.get("type") if isinstance(piece, Mapping) else None
    if kind == "text":
        return str(piece.get("text", ""))
    whole = json.dumps(piece, sort_keys=True, ensure_ascii=False, default=str)
    if kind is None:
        return whole
    return json.dumps({"type": kind, "bytes": len(whole), "xxh3": xxh3_64_hexdigest(whole.encode())})
