"""
Agents of the host, fitted with the guard where they stand: their tools, servers, models and ends.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from guardrails.core.envelope.envelope import Envelope
from guardrails.core.result.content import read_mcp
from guardrails.core.values.errors import needs
from guardrails.integrations.hosting import remark

from .model import guarded_model
from .running import Behind, awaited, running
from .tools import guard


with needs("openai-agents", "`GuardedRunner`"):
    from agents import (
        Agent,
        AgentOutputSchema,
        AgentOutputSchemaBase,
        Handoff,
        Model,
        ModelBehaviorError,
        ToolsToFinalOutputResult,
        default_tool_error_function,
    )
    from mcp.types import CallToolResult, TextContent


def fit(agent: Any, seen: set[int] | None = None) -> None:
    """
    Fit the guard to *agent* and to those that it hands over to or has as tools, unless they have it.
    """
    seen = set() if seen is None else seen
    if not isinstance(agent, Agent) or id(agent) in seen:
        return
    seen.add(id(agent))
    for tool in agent.tools:
        guard(tool)
    if any(type(server) is not _Server for server in agent.mcp_servers):
        agent.mcp_servers = [server if type(server) is _Server else _Server(server) for server in agent.mcp_servers]
        agent.mcp_config = {"failure_error_function": _unread, **agent.mcp_config}
    if isinstance(agent.model, Model):
        agent.model = guarded_model(agent.model)
    if agent.output_type not in (None, str) and type(agent.output_type) is not _Output:
        schema: Any = agent.output_type
        agent.output_type = _Output(schema if isinstance(schema, AgentOutputSchemaBase) else AgentOutputSchema(schema))
    if agent.tool_use_behavior != "run_llm_again" and type(agent.tool_use_behavior) is not _Stops:
        agent.tool_use_behavior = _Stops(agent.tool_use_behavior)
    for tool in agent.tools:
        fit(getattr(tool, "_agent_instance", None), seen)
    for handoff in agent.handoffs:
        fit(_target(handoff), seen)


def _target(handoff: Any) -> Any:
    if not isinstance(handoff, Handoff):
        return handoff
    known = handoff._agent_ref  # noqa: SLF001  the one place where the host keeps it
    if known is not None:
        return known()
    if not isinstance(handoff.on_invoke_handoff, _Handing):
        handoff.on_invoke_handoff = _Handing(handoff.on_invoke_handoff)
    return None


class _Handing:
    """
    A hand-over to an agent that is not known before.
    """

    def __init__(self, invoke: Any) -> None:
        self._invoke = invoke

    async def __call__(self, *args: Any) -> Any:
        agent = await self._invoke(*args)
        fit(agent)
        return agent


class _Output(Behind):
    """
    The output type of an agent. It takes the digest of a session that came in place of an answer.
    """

    def validate_json(self, json_str: str) -> Any:
        try:
            return self.inner.validate_json(json_str)
        except ModelBehaviorError:
            run = running.get()
            if run is None or run.told is None:
                raise
            return run.told


class _Stops:
    """
    Which results end a run: as the agent's *behavior* says, by what the tools gave back. A call that was refused ends none.
    """

    def __init__(self, behavior: Any) -> None:
        self._behavior = behavior

    async def __call__(self, context: Any, results: list[Any]) -> ToolsToFinalOutputResult:
        run = running.get()
        given = {} if run is None else run.given
        plain = [replace(each, output=_plain(each, given)) for each in results]
        if callable(self._behavior):
            ends: ToolsToFinalOutputResult = await awaited(self._behavior(context, plain))
            return ends
        names = self._behavior.get("stop_at_tool_names", ()) if isinstance(self._behavior, dict) else None
        for each in plain:
            stops = names is None or each.tool.name in names or each.tool.qualified_name in names
            if stops and (run is None or _id(each) in given):
                return ToolsToFinalOutputResult(is_final_output=True, final_output=each.output)
        return ToolsToFinalOutputResult(is_final_output=False, final_output=None)


def _plain(result: Any, given: Mapping[str, tuple[Any, Any]]) -> Any:
    read, value = given.get(_id(result), (None, None))
    # A guardrail of the host may have put something else in its place.
    return value if result.output == read else result.output


def _id(result: Any) -> str:
    raw: Any = getattr(result.run_item, "raw_item", None)
    return str(raw["call_id"]) if isinstance(raw, Mapping) else ""


_calling: ContextVar[Any] = ContextVar("guardrails_openai_agents_mcp_call", default=None)


class _Server(Behind):
    """
    An MCP server whose tools are called behind the session of the run.
    """

    async def tool_meta_resolver(self, context: Any) -> Any:
        # The host asks for it right before it makes the call, which does not say which one of the model it is.
        _calling.set(context.run_context)
        own = self.inner.tool_meta_resolver
        return None if own is None else await awaited(own(context))

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        run, context, more = running.get(), _calling.get(), {} if meta is None else {"meta": meta}
        if run is None or context is None:
            return await self.inner.call_tool(tool_name, arguments, **more)
        result: Any = None

        async def execute(_: str, arguments: Any) -> Any:
            nonlocal result
            result = await self.inner.call_tool(tool_name, arguments, **more)
            return read_mcp(result)

        name = context.qualified_tool_name
        envelope = await run.calling(name).acall(name, arguments or {}, execute, id=context.tool_call_id)
        return _shown(envelope, result)


async def _unread(context: Any, error: Exception) -> str:
    """
    Returns the answer to a call that came to no server, since its arguments are no JSON.
    """
    run = running.get()
    if run is None or not isinstance(error, ModelBehaviorError):
        return str(default_tool_error_function(context, error))

    def never(*_: Any) -> Any:
        raise error

    call = context.qualified_tool_name, context.tool_arguments, never
    return (await run.session.acall(*call, id=context.tool_call_id)).to_json()


def _shown(envelope: Envelope, result: Any) -> Any:
    if envelope.ok and any(item.type != "text" for item in result.content):
        said = remark(envelope)
        note = [] if said is None else [TextContent(type="text", text=said)]
        return result.model_copy(update={"content": [*result.content, *note]})
    return CallToolResult(content=[TextContent(type="text", text=envelope.to_json())])
