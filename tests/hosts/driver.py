"""
How the contract drives a host: a scripted model, plain functions as tools, and what came of a run.
"""

import asyncio
import json
import re
import threading
import uuid

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pytest

from pydantic import BaseModel


MODEL: Final = "scripted-1"
"""The name of the scripted model, by which it is priced."""
HELPER: Final = "helper"
"""The tool by which a model asks a sub-agent: `helper(task)`."""


@dataclass(frozen=True)
class Call:
    """
    A tool call that the scripted model makes. *arguments* that are text are sent as they are, be they JSON or not.
    """

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    """None: `key` makes one, other than all before."""

    @property
    def key(self) -> str:
        return self.id or f"c-{uuid.uuid4()}"

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def values(self) -> Any:
        """
        The arguments for hosts whose models give no text, but what it says. Raises ValueError if they are no JSON.
        """
        return json.loads(self.text)


@dataclass(frozen=True)
class Say:
    """
    What the scripted model answers to one request.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    """Tokens in and out; None: the model does not say."""
    output: Mapping[str, Any] | None = None
    """The structured output, which the driver says in the host's own way: an output tool, or JSON."""

    @property
    def words(self) -> list[str]:
        """
        The text in the pieces of a stream.
        """
        return re.findall(r"\S+ ?", self.text)


@dataclass(frozen=True)
class Asked:
    """
    One request as the model gets it.
    """

    n: int
    """From 0."""
    tools: tuple[str, ...]
    """Names of the tools that are offered, without those of the host's own for structured output."""
    choice: str | None
    """`auto`, `none`, `required`, the name of a forced tool, or None if nothing is said."""
    results: tuple[str, ...]
    """What the model can read of tool results, oldest first, as text."""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    """Of each tool that is offered, what the model is told of it: description, parameters."""

    @property
    def off(self) -> bool:
        """
        Whether tools are off.
        """
        return not self.tools or self.choice == "none"


Script = Callable[[Asked], Say]
"""The model: what it answers to a request. An exception that it raises is one of the model's client."""


@dataclass(frozen=True)
class Helper:
    """
    A sub-agent with tools and a model of its own, behind the very adapter of the agent that asks it.
    """

    tools: Sequence[Callable[..., Any]]
    script: Script


@dataclass(frozen=True)
class Way:
    """
    How a run is to be made; each but the first two is given by some tests only.
    """

    prompt: str = "go"
    thread: str | None = None
    stream: bool = False
    """The model says its text word by word."""
    sync: bool = False
    """The host's synchronous run, if it has one."""
    choice: str | None = None
    """The name of a tool; the user of the host forces it."""
    output: Any = None
    """A model of pydantic; the structured output that the user of the host asks for."""
    helper: Helper | None = None
    """The tools are joined by `helper(task)`, which asks it."""
    pausing: Sequence[str] = ()
    """Names of tools whose calls the host holds, in its own form, until a person has said yes."""
    resume: bool | None = None
    """True goes on in the thread, where it paused; a person has said yes."""
    cancel: Any = None
    """A `threading.Event`; once it is set the run is cancelled, see `cancelled`."""


@dataclass
class Ran:
    """
    What came of a run.
    """

    answer: str | None = None
    """The final answer, as the host gives it to its user."""
    asked: list[Asked] = field(default_factory=list)
    error: BaseException | None = None
    """What the host raised."""
    streamed: list[str] = field(default_factory=list)
    """Pieces of text, as the host streamed them."""
    unanswered: list[str] = field(default_factory=list)
    """Ids of calls without a result in the conversation that the host keeps, where no request to OpenAI would show them."""
    paused: list[str] = field(default_factory=list)
    """Names of the tools whose calls wait for a person, in the host's own form."""
    output: Any = None
    """The structured output, if one was asked for."""
    sent: list[Any] = field(default_factory=list)
    """The bodies of requests to OpenAI, if the host sends such. The API would refuse one with a call without a result."""

    @property
    def results(self) -> tuple[str, ...]:
        """
        What the model could read of tool results in the end, oldest first.
        """
        return self.asked[-1].results


class Driver:
    """
    One host, with its real package. `tests/hosts/test_NAME.py` has its driver and the contract over it.
    """

    name: str
    """As the file `test_NAME.py` has it."""
    kind: Any
    """Makes the adapter of a policy or a session, with the options of `Policy.session`."""
    cannot: ClassVar[Mapping[str, str]] = {}
    """Tests of the contract that the host's own source makes impossible, by name: the reason, with its file and line."""
    limits: Mapping[str, Any] = {}
    """What a run asks of the host so that a test that went wrong ends soon; empty: the host's own limits."""

    def adapter(self, guarded: Any, **options: Any) -> Any:
        return self.kind(guarded, **options)

    def run(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, **how: Any) -> Ran:
        """
        Let an agent of the host run *tools* as *script* says, behind *adapter* (None: the bare host), in the `Way` that
        *how* says. Of a thread the driver keeps between runs what the host keeps.
        """
        ran = Ran()
        try:
            self.go(adapter, tools, script, Way(**how), ran)
        except BaseException as error:
            ran.error = error
        return ran

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        """
        The same, noted in *ran*; what the host raises is raised.
        """
        raise NotImplementedError

    @contextmanager
    def page(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """
        A model in the place of the one that the host's program on the page of the hosts names: it makes the same call until
        its tools are off.
        """
        from .openai_model import openai_model

        with openai_model(monkeypatch):
            yield


@contextmanager
def looped() -> Iterator[None]:
    """
    The event loop that a host's synchronous run uses, and leaves open.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        loop.close()
        asyncio.set_event_loop(None)


class Task(BaseModel):
    """
    What a sub-agent is asked.
    """

    task: str


def waited(work: Coroutine[Any, Any, Any], way: Way) -> Any:
    """
    What *work* comes to, cancelled where the *way* says so.
    """
    return asyncio.run(work if way.cancel is None else cancelled(work, way.cancel))


async def cancelled(work: Coroutine[Any, Any, Any], when: threading.Event) -> Any:
    """
    What *work* comes to if it is cancelled once *when* is set; raises what it raises then.
    """
    task = asyncio.ensure_future(work)
    await asyncio.to_thread(when.wait, 20)
    task.cancel()
    return await task
