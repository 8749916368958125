"""
The parts that adapters of hosts share: one loop of a host by its requests and responses, and an envelope's notes beside
its value.
"""

import inspect
import json

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from guardrails.core.arguments import foreign_arguments
from guardrails.core.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.core.values.types import Failed
from guardrails.core.values.usage import read_usage
from guardrails.hooks.results import beside, mark_of
from guardrails.policy.sessions import tried
from guardrails.session.final_answer import FinalAnswer, Meaning, Strategy, ToolChoice
from guardrails.session.ledger import SHARE
from guardrails.session.session import NO_DIGEST, scoped
from guardrails.session.steps import current_session


if TYPE_CHECKING:
    from guardrails.core.values.usage import Priced
    from guardrails.policy.sessions import Sessions
    from guardrails.session.session import Requested, Session

T = TypeVar("T")
Read = Callable[[Any], tuple[str | None, int, dict[str, Any]]]
"""Of a response: its text, the number of its calls, and what else to charge."""

BROKEN_OFF: Final = Envelope.error("cancelled", "this call was broken off before it gave a result")
_AS_JSON: Final = (Mapping, list, tuple, int, float, NoneType, BaseModel)
STORE_CODE: Final = "store.error"
"""Why a final answer is asked for if the state cannot be known."""
MAX_FAILED: Final = 3
"""Requests in a row before which the state could not be read; none of the calls after them would run."""


class Last(NamedTuple):
    """
    The end of what a request streams.
    """

    response: Any


class Asking:
    """
    One loop of a host, request by request: `ask`, then `take` or `failed`. A store that fails loses no conversation.

    *first* says whether the next request is the first of its loop. The flag *user* says whether a message of the user begins
    the loop, and not another agent. With *blocking* nothing waits for an event loop.
    """

    def __init__(self, session: "Session", *, first: bool = True, user: bool = True, blocking: bool = False) -> None:
        self.session, self.final = session, FinalAnswer(session)
        self.final.first = first
        self._user, self.blocking = user, blocking
        self._asked: Requested | None = None

    @property
    def off(self) -> bool:
        """
        Tools are off for the latest request that was asked about.
        """
        return self.final.code is not None

    async def respond(
        self, requested: ToolChoice, send: Callable[[ToolChoice], Any], read: Read, *, again: bool = True
    ) -> tuple[Any, str | None]:
        """
        Ask a model until its response is one to go on with: with tools off, the same is asked once more if it calls a tool.

        The function *send* makes a request with a `tool_choice`. Its response is *read* as a text, a number of calls, and
        what else to charge. Returns the response, and the digest if that is the answer in its place. Without *again* the
        host deals with a response that calls a tool all the same.
        """
        while True:
            choice = await self.off_loop(self.ask, requested)
            try:
                response = await awaited(send(choice))
            except BaseException:
                await self.off_loop(self.failed)
                raise
            made = await self._taken(response, read, again=again)
            if made is not None:
                return made

    async def stream(
        self,
        requested: ToolChoice,
        send: Callable[[ToolChoice], AsyncGenerator[Any, None]],
        read: Read,
        *,
        again: bool = True,
    ) -> AsyncGenerator[Any, None]:
        """
        The same for a model that streams: *send* streams events and its `Last`. So does this; here the `Last` has what
        `respond` returns. A request without a `Last` is given up.
        """
        last: Last | None = None
        while last is None:
            choice = await self.off_loop(self.ask, requested)
            end: Last | None = None
            try:
                async with aclosing(send(choice)) as events:
                    async for event in events:
                        if isinstance(event, Last):
                            end = event
                        else:
                            yield event
            finally:
                if end is None:
                    await self.off_loop(self.failed)
            if end is None:
                return
            made = await self._taken(end.response, read, again=again)
            last = None if made is None else Last(made)
        yield last

    async def _taken(self, response: Any, read: Read, *, again: bool) -> tuple[Any, str | None] | None:
        text, calls, told = read(response)
        meaning = await self.off_loop(self.take, text, calls, **told)
        if meaning == "again" and again:
            return None
        return response, await self.off_loop(self.session.digest) if meaning == "digest" else None

    async def off_loop(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """
        Returns the result of a *function* that may ask the store, without holding up an event loop.
        """
        if self.blocking:
            return function(*args, **kwargs)
        return await self.session.ledger.off_loop(function, *args, **kwargs)

    def ask(self, requested: ToolChoice = None, *, strategy: Strategy | None = None) -> ToolChoice:
        """
        Say that a model request starts. Returns the value to send as `tool_choice` if the user of the host *requested*
        another, or decides by *strategy*.
        """
        try:
            if self._user and self.final.first and current_session() is None:
                # Where a tool asks a model of its own, no user has sent a message.
                self.session.ledger.go_on()
            self._user = False
            self._asked = self.session.request()
            self.final.force(self._asked.code)
            choice = self.final.tool_choice(requested, strategy=strategy)
        except Exception as error:  # whatever a store raises
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
            tried(self.session, self._asked.release, None)
            self._asked = None

    def take(self, text: str | None, calls: int = 0, **told: Any) -> Meaning:
        """
        Charge a response, and say what it means; see `FinalAnswer.take` for that, and `charge` for what else is *told*.
        """
        meaning = self.final.take(text, calls)
        self.charge(calls=calls, **told)
        return meaning

    def charge(self, *, calls: int = 0, model: str = "", usage: object = None, **told: Any) -> "Priced | None":
        """
        Charge the response of *model*, as `Session.charge` does: its `key` tells it from all others, its `provider` says
        what it costs, and one that is not `whole` broke off. Returns None if the store fails.
        """
        told |= {"calls": calls, "model": model, "request": self._asked}
        self._asked = None
        try:
            usage = read_usage(usage)
        except SessionError as error:
            # What it says it used is no usage: it counts as a response that does not say.
            log.error("the usage of a response cannot be read: %s", error, extra={"session": self.session.id})
            usage = None
        return tried(self.session, lambda: self.session.charge(usage=usage, **told), None)

    def refusal(self, tool: str, arguments: Any, *, id: str | None = None) -> Envelope:
        """
        Returns the refusal that a call reads after the final answer was asked for.
        """
        unknown = Envelope("limit_reached", code=self.final.code, message=NO_DIGEST)
        return tried(self.session, lambda: self.final.refusal(tool, arguments, id=id), unknown)

    @property
    def answer(self) -> str | None:
        """
        The answer that ends the loop: the model's, or the session's digest. None while it goes on.
        """
        return self.session.digest() if self.final.ended == "digest" else self.final.text


_FAILED: "WeakKeyDictionary[Session, int]" = WeakKeyDictionary()
"""Of sessions whose state could not be read before their last request: how often in a row."""


def calling(session: "Session", tool: Tool | None, passes: Iterable[type[BaseException]] = ()) -> "Session":
    """
    Returns *session* for a call of *tool*, with the exceptions that it *passes*. Another agent of the session may have
    another tool of that name at the same time. None: the host knows no such tool.
    """
    if tool is None:
        return scoped(session, {}, passes=passes)
    session.calls.declare(tool)
    spec = tool.arguments()
    return scoped(session, {} if spec is None else {tool.name: spec}, passes=passes)


def user_asks(session: "Session") -> None:
    """
    Say that the user has sent a further message. A store that fails loses no conversation: the next request says so.
    """
    tried(session, session.ledger.go_on, False)


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
        except Exception as error:  # whatever a store raises
            if not isinstance(error, SessionError):
                log.error("store failed: %s", error, extra={"session": session.id})
    return None


def give_back(child: "Session", *, forget: bool = False) -> None:
    """
    Close *child*, whose agent has answered, and *forget* it: a store that fails loses no answer.
    """
    tried(child, child.close, None)
    if forget:
        tried(child, child.ledger.forget, None)


def opened(
    sessions: "Sessions", name: object, around: "Session | None" = None, **amounts: Any
) -> tuple["Session", Callable[[], None]]:
    """
    Returns the session of a run, and the function to call at its end. It is a share of that *around* the run, with
    *name* and *amounts* as `share_of` takes them, else the one that *sessions* have by *name*; None: one that is
    forgotten at the end.
    """
    if around is None:
        session = sessions.of(name)
        return session, nothing if name is not None else partial(sessions.end, session)
    child = share_of(around, None if name is None else str(name), **amounts)
    return (around, nothing) if child is None else (child, partial(give_back, child, forget=name is None))


def nothing() -> None:
    """
    There is nothing to give back.
    """


def finished(work: Coroutine[Any, Any, T]) -> T:
    """
    Returns the result of *work*, which waits for nothing. Raises TypeError if it does.
    """
    try:
        work.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    work.close()
    raise TypeError("a client, a tool or a listener is asynchronous: ask for it by the asynchronous method")


async def awaited(made: Any) -> Any:
    """
    *made*, or what it comes to if it is to be awaited.
    """
    return await made if inspect.isawaitable(made) else made


def declared(name: str, schema: Any, description: str | None = None, hints: Mapping[str, Any] | None = None) -> Tool:
    """
    The tool *name* of a host as a session knows it: what the model may pass by its *schema*, a JSON Schema or a model
    of pydantic, and the *hints* of an MCP server. Without a schema, arguments are not checked.
    """
    parameters = None if schema is None else foreign_arguments(name, schema)
    made = Tool(name=name, description=description or "", parameters=parameters)
    return made.override({"annotations": hints}) if hints else made


def missing(tool: str, _: Any = None) -> Failed:
    """
    Returns the outcome of a call of a *tool* that does not exist.
    """
    return Failed(f"`{tool}` is not there: there is no tool of that name", error_type="tool_missing")


def content(
    blocks: Collection[Any], envelope: Envelope, text: Callable[[str], Any], is_text: Callable[[Any], bool]
) -> list[Any] | None:
    """
    Returns the *blocks* of a result of several kinds as a model reads them: with the notes of *envelope* beside, or with
    *envelope* in place of their texts if those were cut. The function *text* makes a block. None: *envelope* alone is read.
    """
    if not envelope.ok or all(map(is_text, blocks)):
        return None
    if envelope.cut is not None:
        return [text(envelope.to_json()), *(block for block in blocks if not is_text(block))]
    said = beside(envelope)
    return [*blocks] if said is None else [*blocks, text(said)]


def value_of(text: str, function: Any) -> Any:
    """
    Returns the value that a tool's *function* returned as *text*: by its annotation, since hosts write objects as JSON.
    """
    with suppress(Exception):  # an annotation may name what is not there, and the text may be no JSON
        made = get_type_hints(getattr(function, "func", function)).get("return", str)
        kinds = get_args(made) if get_origin(made) in (Union, UnionType) else (made,)
        if all(issubclass(get_origin(kind) or kind, _AS_JSON) for kind in kinds):
            return json.loads(text)
    return text


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
    return json.dumps(piece if kind is None else mark_of(kind, piece), sort_keys=True, ensure_ascii=False, default=str)
