"""
A run of the host as its session sees it, and objects of the host with something of ours in front.
"""

import inspect

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Final

from guardrails.core.arguments import Arguments, foreign_arguments
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.tools.tool import Tool
from guardrails.core.values.errors import needs
from guardrails.core.values.types import Failed
from guardrails.integrations.hosting import Asking, user_asks
from guardrails.session.final_answer import Meaning
from guardrails.session.session import Session, scoped
from guardrails.session.steps import current_session


with needs("openai-agents", "`GuardedRunner`"):
    from agents import FunctionTool, Handoff, ItemHelpers, ModelSettings


_PROVIDERS_OWN: Final = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"}
)
"""Calls that the provider makes itself, with `mcp_call`; the host makes all others, or asks a person."""


class Behind:
    """
    An object of the host with methods in front: every other attribute is the object's own, its class too.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.inner)


@dataclass
class Running:
    """
    One run behind *session*; a *named* one goes on in a later run. A run of an agent that is a tool is one of its own.
    """

    session: Session
    named: bool = True
    shared: bool = False
    """The session is a share of that of the run whose tool made this one."""
    owner: object = None
    """The runner."""
    user: bool = False
    """A message of the user's begins it, which the session has not been told of."""
    told: str | None = None
    """The digest, if it was the answer."""
    given: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """Of the calls that ran since the latest request, by their ids: what the model reads, and what the tool gave back."""
    asking: Asking = field(init=False)
    _names: tuple[str, ...] = ()
    _asked: set[tuple[str, ...]] = field(default_factory=set)
    """What was offered in the requests that were answered; the agents of a run are told apart by it."""
    _offered: dict[str, Tool] = field(default_factory=dict)
    _schemas: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asking = Asking(self.session, user=False)

    def ask(
        self, settings: ModelSettings, tools: Sequence[Any], handoffs: Sequence[Handoff[Any, Any]]
    ) -> ModelSettings:
        """
        The settings of the request that is made now. A choice that forces a tool holds for the first of each agent.
        """
        if self.user and current_session() is None:
            user_asks(self.session)
        self.user = False
        self.given.clear()
        names = (*(tool.name for tool in tools), *(handoff.tool_name for handoff in handoffs))
        self.offer(tool for tool in tools if isinstance(tool, FunctionTool))
        self._offered.update({name: Tool(name=name) for name in names if name not in self._offered})
        self._names, self.asking.final.first = names, names not in self._asked
        requested = settings.tool_choice
        said = requested if requested is None or isinstance(requested, str) else "required"
        choice: Any = self.asking.ask(said)
        # Without tools an endpoint refuses the key.
        return settings if choice == said or not names else replace(settings, tool_choice=choice)

    def take(self, output: Sequence[Any], usage: Any, model: str) -> Meaning:
        """
        Charge a response. Returns its meaning. The host names responses of several providers alike: they have no key.
        """
        self._asked.add(self._names)
        calls = [item for item in output if _is_call(item)]
        texts = [ItemHelpers.extract_text(item) or ItemHelpers.extract_refusal(item) or "" for item in output]
        said = "".join(texts)
        if not said and any(item.type not in ("message", "reasoning") for item in output):
            said = "(what the provider did itself)"
        used = usage if usage is not None and usage.total_tokens else None
        return self.asking.take(said, calls, model=model, usage=used)

    def offer(self, tools: Iterable[FunctionTool]) -> None:
        """
        Let the session know *tools*. Tools of two agents may have one name: the latest is meant.
        """
        fresh = {
            tool.qualified_name: tool for tool in tools if self._schemas.get(tool.qualified_name) != _told_of(tool)
        }
        declared = {name: declaration(tool) for name, tool in fresh.items()}
        self._schemas.update({name: _told_of(tool) for name, tool in fresh.items()})
        self._offered.update(declared)
        if declared:
            self.session.calls.declare(*declared.values())

    def calling(self, name: str, passes: Iterable[type[BaseException]] = ()) -> Session:
        """
        Returns the session for a call of the tool *name* that was offered here. Another run may call another tool by
        that name.
        """
        tool = self._offered.get(name)
        spec = None if tool is None else tool.arguments()
        return scoped(self.session, {} if spec is None else {name: spec}, passes=passes)

    async def unknown(self, name: str, call_id: str) -> Envelope:
        """
        Returns the refusal that a call reads if its tool was not offered.
        """

        def never(tool: str, _: Any) -> Any:
            return Failed(f"there is no tool `{tool}`", error_type="tool_missing")

        return await scoped(self.session, {}, self._offered.values()).acall(name, {}, never, id=call_id)


running: ContextVar[Running | None] = ContextVar("guardrails_openai_agents_run", default=None)
"""The run that this task is a part of; None: none of ours."""


def _is_call(item: Any) -> bool:
    kind: str = item.type
    return kind == "mcp_approval_request" or (
        kind.endswith("_call") and kind not in _PROVIDERS_OWN and kind not in ("mcp_call", "tool_search_call")
    )


def _told_of(tool: FunctionTool) -> Any:
    return tool.params_json_schema, tool.strict_json_schema, tool.mcp_annotations


def declaration(tool: FunctionTool) -> Tool:
    """
    Returns the declaration of *tool*, from its schema and from its server's annotations.
    """
    made = Tool(name=tool.qualified_name, description=tool.description, parameters=_arguments(tool))
    hints = tool.mcp_annotations
    return made if hints is None else made.override({"annotations": hints.model_dump(by_alias=True)})


def _arguments(tool: FunctionTool) -> Arguments | None:
    schema: Any = tool.params_json_schema
    return foreign_arguments(tool.qualified_name, _as_written(schema) if tool.strict_json_schema else schema)


def _as_written(schema: Any) -> Any:
    """
    *schema* before the host made it strict, which requires what has a default too.
    """
    if isinstance(schema, list):
        return [_as_written(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _as_written(each) for key, each in schema.items()}
    fields = made.get("properties")
    if isinstance(fields, dict) and isinstance(made.get("required"), list):
        made["required"] = [name for name in made["required"] if not _may_be_left_out(fields.get(name))]
    return made


def _may_be_left_out(field: Any) -> bool:
    return isinstance(field, dict) and ("default" in field or {"type": "null"} in (field.get("anyOf") or ()))


async def awaited(value: Any) -> Any:
    """
    *value*, or what it comes to if it is to be awaited.
    """
    return await value if inspect.isawaitable(value) else value
