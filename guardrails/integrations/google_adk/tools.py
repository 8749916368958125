"""
A tool of ADK that runs behind a session.
"""

import asyncio
import copy

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import calling, give_back
from guardrails.session.steps import is_async

from .results import CHILDREN, ENDS, PASSES, Later, is_free, later, read, shown, told
from .run import Run


with needs("google-adk", "this adapter"):
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.long_running_tool import LongRunningFunctionTool

if TYPE_CHECKING:
    from guardrails.session.session import Session

UNSET: Final = object()


class Guarded:
    """
    The twin that runs a *tool* in place of its own `run_async`, in the run that *find* finds. The model was told of the
    tool as *known*.
    """

    def __init__(self, tool: BaseTool, find: Callable[[Any], Run], known: Tool | None = None) -> None:
        self.tool = tool
        self.find = find
        self.known = known

    @classmethod
    def of(cls, tool: BaseTool, find: Callable[[Any], Run], known: Tool | None = None) -> BaseTool:
        """
        A twin of *tool*, of the same type, that runs behind the session. *tool* itself is left alone.
        """
        if tool.name in ENDS or is_free(tool) or cls.is_one(tool, find):
            return tool
        try:
            twin = copy.copy(tool)
            twin.run_async = cls(tool, find, known)
        except Exception:  # noqa: BLE001  whatever forbids a twin: callbacks guard it
            return tool
        return twin

    @classmethod
    def is_one(cls, tool: BaseTool, find: Callable[[Any], Run]) -> bool:
        """
        Returns whether *tool* is a guarded twin, or a twin of a twin.
        """
        run = getattr(tool, "run_async", None)
        return isinstance(run, cls) and (run.find == find or cls.is_one(run.tool, find))

    async def __call__(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """
        Run the tool if the session lets it. An error that it raises goes on to the error callbacks.
        """
        tool, run, key = self.tool, self.find(tool_context), tool_context.function_call_id
        if run.refuses(tool_context):
            return told(await run.refusal(tool.name, args, tool_context))
        native: Any = UNSET
        raised: Exception | None = None

        async def execute(_: str, arguments: Any) -> Any:
            nonlocal native, raised
            # What an attempt before came to is not what this one does.
            native, raised = UNSET, None
            try:
                native = await tool.run_async(args=dict(arguments), tool_context=tool_context)
            except Exception as error:
                raised = error
                raise
            if later(tool, tool_context, native):
                raise Later
            return read(native)

        def begin(name: str, arguments: Any) -> Any:
            # With a time limit the session runs it in a thread, which has no loop: else it would stop the host's.
            made = execute(name, arguments)
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                return asyncio.run(made)
            return made

        children: list[Session] = []
        before = CHILDREN.set(children)
        run.begun.add(key)
        try:
            session = run.session if self.known is None else calling(run.session, self.known, PASSES)
            envelope = await session.acall(tool.name, args, begin if _blocks(tool) else execute, id=key)
        except PASSES as passed:
            run.begun.discard(key)
            if isinstance(passed, Later):
                return native
            raise
        except asyncio.CancelledError:
            run.broken = True
            raise
        finally:
            CHILDREN.reset(before)
            for child in children:
                await child.ledger.off_loop(give_back, child)
        if raised is not None and not envelope.ok:
            run.raised[key] = envelope
            raise raised
        return told(envelope) if native is UNSET else shown(native, envelope, tool_context)


def _blocks(tool: BaseTool) -> bool:
    """
    Returns whether *tool* is a synchronous function, which ADK runs in its loop.
    """
    return type(tool) in (FunctionTool, LongRunningFunctionTool) and not is_async(tool.func)
