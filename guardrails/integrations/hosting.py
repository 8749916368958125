"""
The parts that adapters of hosts share: one loop of a host by its requests and responses, and an envelope's notes beside
its value.
"""

import asyncio
import inspect
import json

from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints
from uuid import uuid4
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from guardrails.core.arguments import Arguments, arguments_of, foreign_arguments
from guardrails.core.envelope import Envelope
from guardrails.core.tool import Tool
from guardrails.core.values.errors import SessionError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.core.values.types import Failed
from guardrails.core.values.usage import Priced, read_usage
from guardrails.hooks.results import mapping, mark_of, notes_of
from guardrails.policy.policy import Policy
from guardrails.policy.sessions import SessionOptions, Sessions, tried
from guardrails.session.final_answer import FinalAnswer, Meaning, Strategy, ToolChoice
from guardrails.session.ledger import SHARE
from guardrails.session.session import NO_DIGEST, Requested, Session, scoped
from guardrails.session.steps import current_session


T = TypeVar("T")
Read = Callable[[Any], tuple[str | None, int, dict[str, Any]]]
"""Of a response: its text, the number of its calls, and what else to charge."""
Stream = Callable[[ToolChoice], AsyncGenerator[Any, None]]
"""A request: its events, and its `Last`."""
Ends = Callable[[Any, str | None], Iterable[Any]]
"""The last events of a response, and of the digest if that is the answer in its place."""

BROKEN_OFF: Final = Envelope.error("cancelled", "this call was broken off before it gave a result")
_AS_JSON: Final = (Mapping, list, tuple, int, float, NoneType, BaseModel)
STORE_CODE: Final = "store.error"
"""Why a final answer is asked for if the state cannot be known."""
LAST_CODE: Final = "loop.request_limit"
"""Why a final answer is asked for with the last request that the host makes, or once it has turned tools off."""
MAX_FAILED: Final = 3
"""Requests in a row before which the state could not be read; none of the calls after them would run."""


class Adapter:
    """
    What puts a host's runs behind *guarded*: a policy, or a session that several agents share. *options* are those of
    `Policy.session`.
    """

    def __init__(self, guarded: Policy | Session, **options: Unpack[SessionOptions]) -> None:
        super().__init__()
        self._sessions = Sessions(guarded, **options)

    def session(self, name: object) -> Session:
        """
        The session of the runs, or the thread, of that *name*.
        """
        return self._sessions.of(name)


class Last(NamedTuple):
    """
    The end of what a request streams.
    """

    response: Any


class Parked(BaseException):
    """
    A person, or something outside, is to say what comes of a call, which goes on later. Until then *native* is its result.
    It is no failure, which a host or a tool might catch.
    """

    def __init__(self, native: Any = None) -> None:
        super().__init__()
        self.native = native


class HostLoop:
    """
    One loop of a host, request by request: `ask`, then `take` or `failed`. A store that fails loses no conversation.

    *first* says whether the next request is the first of its loop. The flag *user* says whether a message of the user begins
    the loop, and not another agent. The last of *requests*, as many as the host makes, is one for an answer.
    """

    blocking = False
    """Nothing waits for an event loop."""

    def __init__(self, session: Session, *, first: bool = True, user: bool = True, requests: int | None = None) -> None:
        self.session, self.final = session, FinalAnswer(session)
        self.final.first = first
        self._user, self.left, self._agents = user, requests, set[object]()
        self._request: Requested | None = None

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

        async def events(choice: ToolChoice) -> AsyncGenerator[Any, None]:
            yield Last(await maybe_await(send(choice)))

        both = self.stream(requested, events, read, lambda *end: [end], again=again)
        [(response, digest)] = [end async for end in both]
        return response, digest

    async def stream(
        self, requested: ToolChoice, send: Stream, read: Read, ends: Ends, *, again: bool = True
    ) -> AsyncGenerator[Any, None]:
        """
        The same for a model that streams: *send* streams events and its `Last`. Of that response, and the digest if that is
        the answer, *ends* makes the last events. A request without a `Last` is given up.
        """
        while True:
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
            text, calls, charge = read(end.response)
            meaning = await self.off_loop(self.take, text, calls, **charge)
            if meaning != "again" or not again:
                break
        digest = await self.off_loop(self.session.digest) if meaning == "digest" else None
        for event in ends(end.response, digest):
            yield event

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
            self._request = self.session.request()
            self.final.force(self._request.code)
            choice = self.final.tool_choice(requested, strategy=strategy)
        except Exception as error:  # whatever a store raises
            failed = _FAILED[self.session] = _FAILED.get(self.session, 0) + 1
            log.error("store failed: %s", error, extra={"session": self.session.id})
            if failed >= MAX_FAILED:
                self.final.force(STORE_CODE)
            return "none" if self.off else requested
        _FAILED.pop(self.session, None)
        return choice

    def begin(self, agent: object) -> None:
        """
        Say that the next request is one of *agent*, if several share the loop: the first of each may force a tool.
        """
        self.final.first = agent not in self._agents
        self._agents.add(agent)
        self.left = None if self.left is None else self.left - 1
        self.final.force(LAST_CODE if self.left == 0 else None)

    def failed(self) -> None:
        """
        Say that the request came to nothing: what it held comes back.
        """
        if self._request is not None:
            tried(self.session, self._request.release, None)
            self._request = None

    def take(self, text: str | None, calls: int = 0, **charge: Any) -> Meaning:
        """
        Charge a response, and say what it means; see `FinalAnswer.take` for that, and the method `charge` for the rest.
        """
        meaning = self.final.take(text, calls)
        self.charge(calls=calls, **charge)
        return meaning

    def charge(self, *, calls: int = 0, model: str = "", usage: object = None, **options: Any) -> Priced | None:
        """
        Charge the response of *model*, as `Session.charge` does: its `key` tells it from all others, its `provider` says
        what it costs, and one that is not `whole` broke off. Returns None if the store fails.
        """
        options |= {"calls": calls, "model": model, "request": self._request}
        self._request = None
        try:
            usage = read_usage(usage)
        except SessionError as error:
            # What it says it used is no usage: it counts as a response that does not say.
            log.error("the usage of a response cannot be read: %s", error, extra={"session": self.session.id})
            usage = None
        return tried(self.session, lambda: self.session.charge(usage=usage, **options), None)

    def refusal(self, tool: str, arguments: Any, *, id: str | None = None) -> Envelope:
        """
        Returns the refusal that a call reads after the final answer was asked for.
        """
        unknown = Envelope("limit_reached", code=self.final.code, message=NO_DIGEST)
        return tried(self.session, lambda: self.final.refusal(tool, arguments, id=id), unknown)


_FAILED: WeakKeyDictionary[Session, int] = WeakKeyDictionary()
"""Of sessions whose state could not be read before their last request: how often in a row."""


def call_session(session: Session, tool: Tool | None, passes: Iterable[type[BaseException]] = ()) -> Session:
    """
    Returns *session* for a call of *tool*, with the exceptions that it *passes*. Another agent of the session may have
    another tool of that name at the same time. None: the host knows no such tool.
    """
    if tool is None:
        return scoped(session, {}, passes=passes)
    session.calls.declare(tool, listed=False)
    spec = tool.arguments()
    return scoped(session, {} if spec is None else {tool.name: spec}, passes=passes)


async def guarded_call(
    loop: HostLoop,
    name: str,
    tool: Tool | None,
    arguments: Any,
    invoke: Callable[[Any], Any],
    outcome: Callable[[Any], Any],
    *,
    id: str | None = None,
    passes: Iterable[type[BaseException]] = (),
    blocking: bool = False,
) -> tuple[Envelope | None, Any]:
    """
    Run a call of *tool* behind the session of *loop*: `invoke(arguments)` is the host's own way, and `outcome(native)` reads
    the native result. If the host knows no tool of that *name*, it is None, and the call says so. Returns the envelope and the native result; no envelope if the call is `Parked`. With tools off
    nothing runs. A *blocking* tool holds up its event loop: with a time limit it runs in a thread, in a loop of its own.
    """
    if loop.off:
        return await loop.off_loop(loop.refusal, name, arguments, id=id), None
    native: Any = None

    async def attempt(_: str, fitted: Any) -> Any:
        nonlocal native
        # The result of an attempt before is not that of this one.
        native = None
        native = await maybe_await(invoke(fitted))
        return outcome(native)

    def begin(_: str, fitted: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(attempt(_, fitted))
        return attempt(_, fitted)

    try:
        own = call_session(loop.session, tool, (Parked, *passes))
        execute = missing if tool is None else begin if blocking else attempt
        envelope = await own.acall(name, arguments, execute, id=id)
    except Parked as parked:
        return None, parked.native
    return envelope, native


def give_back(child: Session, *, forget: bool) -> None:
    """
    Close *child*, whose agent has answered, and *forget* it: a store that fails loses no answer.
    """
    tried(child, child.close, None)
    if forget:
        tried(child, child.ledger.forget, None)


def open_run(sessions: Sessions, name: object) -> tuple[Session, Callable[[], None]]:
    """
    Returns the session of a run, and the function to call at its end. In a call of a session of the same policy it is a
    share of that, else the one that *sessions* have by *name*; None: one that is forgotten at the end.
    """
    around = sessions.around
    if around is not None:
        return open_share(around, None if name is None else str(name))
    session = sessions.of(name)
    return session, nothing if name is not None else partial(sessions.end, session)


def open_share(around: Session, name: str | None = None, **amounts: Any) -> tuple[Session, Callable[[], None]]:
    """
    Returns a child of the session *around* a run, with *amounts* as `child` takes them, by default a share that grows, and
    the function to call at its end. It has the *name*; if that is used up, or None, one of its own. Without a name it is
    forgotten at the end.

    If so little is left that no part of it can be held, or the store fails, the session *around* holds.
    """
    for own in (name, uuid4().hex if name is None else f"{name}-{uuid4().hex}"):
        try:
            if own is not None:
                child = around.child(session_name(own), **(amounts or {"share": SHARE}))
                return child, partial(give_back, child, forget=name is None)
        except Exception as error:  # whatever a store raises
            if not isinstance(error, SessionError):
                log.error("store failed: %s", error, extra={"session": around.id})
    return around, nothing


async def aopen_run(sessions: Sessions, name: object) -> tuple[Session, Callable[[], None]]:
    """
    The same, without holding up an event loop. A share has no name.
    """
    around = sessions.around
    return open_run(sessions, name) if around is None else await around.ledger.off_loop(open_share, around)


@asynccontextmanager
async def share(around: Session, name: str) -> AsyncGenerator[Session, None]:
    """
    A block with a share of the session *around* it, which does not hold up the event loop.
    """
    session, end = await around.ledger.off_loop(open_share, around, name)
    try:
        yield session
    finally:
        await around.ledger.off_loop(end)


def guarded(one: Any) -> bool:
    """
    Returns whether *one*, an object of the host, is guarded already; from now on it is.
    """
    before = getattr(one, "guarded", False)
    one.guarded = True
    return bool(before)


def nothing() -> None:
    """
    There is nothing to give back.
    """


def sync_result(work: Coroutine[Any, Any, T]) -> T:
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


async def maybe_await(value: Any) -> Any:
    """
    *value*, or what it comes to if it is to be awaited.
    """
    return await value if inspect.isawaitable(value) else value


def host_tool(name: str, schema: Any, description: str | None = None, hints: Mapping[str, Any] | None = None) -> Tool:
    """
    The tool *name* of a host as a session knows it: what the model may pass by its *schema*, a JSON Schema or a model
    of pydantic, and the *hints* of an MCP server. Without a schema, arguments are not checked.
    """
    tool = Tool(name=name, description=description or "", parameters=foreign_arguments(name, schema, _without_defaults))
    return tool.override({"annotations": hints}) if hints else tool


def _without_defaults(schema: Any) -> Arguments:
    if isinstance(schema, Mapping) and schema.get("required"):
        # Some hosts require all fields so that the API takes the schema as strict.
        fields = schema.get("properties") or {}
        needed = [field for field in schema["required"] if "default" not in mapping(fields.get(field))]
        schema = {**schema, "required": needed}
    return arguments_of(schema)


def missing(tool: str, _: Any = None) -> Failed:
    """
    Returns the outcome of a call of a *tool* that does not exist.
    """
    return Failed(f"`{tool}` is not there: there is no tool of that name", error_type="tool_missing")


def text_block(text: str) -> dict[str, Any]:
    """
    Returns *text* in the form that most hosts have for a part of a message.
    """
    return {"type": "text", "text": text}


def is_text_block(block: Any) -> bool:
    """
    Returns whether *block* is text, alone or in that form.
    """
    return isinstance(block, str) or block.get("type") == "text"


def content(
    blocks: Collection[Any],
    envelope: Envelope,
    text: Callable[[str], Any] = text_block,
    is_text: Callable[[Any], bool] = is_text_block,
) -> list[Any] | None:
    """
    Returns the *blocks* of a result of several kinds as a model reads them: with the notes of *envelope* beside, or with
    *envelope* in place of their texts if those were cut. The function *text* makes a block. None: *envelope* alone is read.
    """
    if not envelope.ok or all(map(is_text, blocks)):
        return None
    if envelope.cut:
        return [text(envelope.to_json()), *(block for block in blocks if not is_text(block))]
    notes = notes_of(envelope)
    return [*blocks] if notes is None else [*blocks, text(notes)]


def value_of(text: str, function: Any) -> Any:
    """
    Returns the value that a tool's *function* returned as *text*: by its annotation, since hosts write objects as JSON.
    """
    with suppress(Exception):  # an annotation may name what is not there, and the text may be no JSON
        hint = get_type_hints(getattr(function, "func", function)).get("return", str)
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
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
