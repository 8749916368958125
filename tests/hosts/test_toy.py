"""
A host of somebody else's, its adapter and its test: the worked example of `docs/extend.md`.
"""

import asyncio
import inspect

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from guardrails import Policy, Session
from guardrails.session.final_answer import FinalAnswer
from tests.hosts.behaviours import Loops
from tests.hosts.driver import Asked, Driver, Ran, Script, Way


Made = tuple[str, str, Any]
"""A call as the host has it: its id, its tool, its arguments."""


class Agent:
    """
    The host. It asks its model until that calls no tool; a hook stands around both.
    """

    def __init__(self, model: Callable[..., Any], tools: Sequence[Callable[..., Any]], hook: "ToyHook | None") -> None:
        self.model, self.hook = model, hook
        self.tools = {tool.__name__: tool for tool in tools}
        self.results: list[str] = []

    async def run(self) -> str:
        while True:
            choice = self.hook.before_request(list(self.tools.values())) if self.hook else "auto"
            text, calls, usage = self.model(self.results, choice)
            answer = self.hook.after_response(text, calls, usage) if self.hook else None
            if answer is not None or not calls:
                return answer or str(text)
            self.results += await asyncio.gather(*(self.call(*call) for call in calls))

    async def call(self, id: str, name: str, arguments: Any) -> str:
        if self.hook:
            return await self.hook.around_tool(id, name, arguments, self.tools.get(name))
        return str(self.tools[name](**arguments))


class ToyHook:
    """
    The adapter: one run of the host behind *session*.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._final = FinalAnswer(session)

    def before_request(self, tools: Sequence[Callable[..., Any]]) -> str:
        """
        The `tool_choice` of the host's next request.
        """
        self._session.calls.declare(*tools)
        requested = self._session.request()
        self._final.force(requested.code)
        return "none" if self._final.forced else "auto"

    def after_response(self, text: str, calls: Sequence[Made], usage: Any) -> str | None:
        """
        The answer if the run is over; None: go on.
        """
        self._session.charge(model="toy-1", usage=usage, calls=len(calls))
        meaning = self._final.take(text, calls)
        return self._final.answer if meaning in ("answered", "digest") else None

    async def around_tool(self, id: str, name: str, arguments: Any, tool: Callable[..., Any] | None) -> str:
        """
        The text that the model reads of a call, whether it runs or is refused.
        """
        if self._final.forced:
            return self._final.refusal(name, arguments, id=id).to_json()

        async def execute(name: str, checked: Any) -> Any:
            if tool is None:
                raise LookupError(f"no tool {name}")
            result = tool(**checked)
            return await result if inspect.isawaitable(result) else result

        return (await self._session.acall(name, arguments, execute, id=id)).to_json()


class Toy(Driver):
    """
    The host with a scripted model, as the suite of behaviours drives it.
    """

    name = "toy"

    def adapter(self, guarded: Any, **options: Any) -> Any:
        return guarded.session("thread-1", **options) if isinstance(guarded, Policy) else guarded

    def go(self, adapter: Any, tools: Sequence[Callable[..., Any]], script: Script, way: Way, ran: Ran) -> None:
        ids = count()

        def model(results: list[str], choice: str) -> tuple[str, list[Made], Any]:
            names = tuple(tool.__name__ for tool in tools)
            ran.asked.append(Asked(n=len(ran.asked), tools=names, choice=choice, results=tuple(results)))
            said = script(ran.asked[-1])
            calls = [(call.id or f"call_{next(ids)}", call.tool, call.arguments) for call in said.calls]
            usage = said.usage and dict(zip(("input_tokens", "output_tokens"), said.usage, strict=True))
            return said.text, calls, usage

        agent = Agent(model, tools, ToyHook(adapter) if adapter is not None else None)
        ran.answer = asyncio.run(agent.run())


class TestToy(Loops):
    driver = Toy
