"""
Tools of crewai behind the session of the run that calls them.
"""

import asyncio
import inspect

from collections.abc import Callable
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import calling, declared

from .running import Run, guarded, running


with needs("crewai", "`Guardrails`"):
    from crewai.tools.tool_failure import ToolFailure, ToolFailureReason
    from crewai.utilities.string_utils import sanitize_tool_name


class Told(str):
    """
    The envelope of a call that did not succeed, as text: no cache keeps it.
    """

    __slots__ = ()


class ToldFailure(ToolFailure):
    """
    The same in the host's own form for a failure, which reads as the envelope alone.
    """

    def as_agent_message(self) -> str:
        """
        The envelope.
        """
        return self.message


class GuardedTool:
    """
    The guarding methods that are put before the class of a tool.
    """

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        """
        The call of a model with native function calling.
        """
        run = running.get()
        if run is None:
            return super().run(*args, **kwargs)  # type: ignore[misc]
        base: Any = super()
        return self._called(run, self._named(args, kwargs), base.run, base.arun)

    async def arun(self: Any, *args: Any, **kwargs: Any) -> Any:
        """
        The same, awaited.
        """
        run = running.get()
        base: Any = super()
        if run is None:
            return await base.arun(*args, **kwargs)

        async def execute(_: str, arguments: Any) -> Any:
            return _outcome(await base.arun(**arguments))

        envelope = await calling(run.session, self._guard).acall(
            self._guard.name, self._named(args, kwargs), _apart(execute)
        )
        return self._read(run, envelope)

    def to_structured_tool(self: Any) -> Any:
        """
        The tool of a model that calls by text.
        """
        made: Any = super().to_structured_tool()  # type: ignore[misc]
        plain: Any = super()._run  # type: ignore[misc]

        def call(**kwargs: Any) -> Any:
            run = running.get()
            return plain(**kwargs) if run is None else self._called(run, kwargs, plain, plain)

        made.func = call
        return made

    def _named(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.args_schema.model_fields, args, strict=False)), **kwargs}

    def _called(self: Any, run: Run, arguments: Any, plain: Callable[..., Any], awaited: Callable[..., Any]) -> Any:
        name, session = self._guard.name, calling(run.session, self._guard)
        if inspect.iscoroutinefunction(getattr(self, "func", None)):

            async def later(_: str, given: Any) -> Any:
                return _outcome(await awaited(**given))

            return self._read(run, run.wait(session.acall(name, arguments, _apart(later))))

        def execute(_: str, given: Any) -> Any:
            token = running.set(None)
            try:
                result = plain(**given)
                return _outcome(asyncio.run(result) if inspect.iscoroutine(result) else result)
            finally:
                running.reset(token)

        return self._read(run, session.call(name, arguments, execute))

    def _read(self: Any, run: Run, envelope: Envelope) -> Any:
        if envelope.ok:
            if self.result_as_answer and envelope.cut is None:
                # It is the user who reads it.
                return envelope.value
            return run.told(self._guard.name, envelope.to_json())
        text = Told(run.told(self._guard.name, envelope.to_json()))
        if self.result_as_answer or envelope.status == "error":
            reason = ToolFailureReason.EXCEPTION if envelope.status == "error" else ToolFailureReason.TOOL_REPORTED
            return ToldFailure(message=str(text), reason=reason, code=envelope.error_type)
        return text


def _apart(execute: Any) -> Any:
    """
    *execute*, in which a sub-agent has a run of its own.
    """

    async def apart(name: str, arguments: Any) -> Any:
        token = running.set(None)
        try:
            return await execute(name, arguments)
        finally:
            running.reset(token)

    return apart


def _outcome(result: Any) -> Any:
    if isinstance(result, ToolFailure):
        return Failed(result.message)
    return result


def guard_tool(tool: Any) -> Any:
    """
    *tool* behind the session of the run that calls it; of what fails, no cache keeps anything.
    """
    if isinstance(tool, GuardedTool):
        return tool
    kept, name = tool.cache_function, sanitize_tool_name(tool.name)
    known = declared(name, tool.args_schema)

    def caches(arguments: Any = None, result: Any = None) -> bool:
        return not isinstance(result, (Told, ToolFailure)) and bool(kept(arguments, result))

    return guarded(GuardedTool, tool, known, cache_function=caches)
