"""
One loop of an agent: its requests, what their responses mean, and the end.
"""

from typing import Any, Final

from guardrails.core.values.errors import needs
from guardrails.core.values.logs import log
from guardrails.integrations.hosting import Asking
from guardrails.session.final_answer import SILENT_CODE
from guardrails.session.session import Session

from .results import ENDS


with needs("google-adk", "this adapter"):
    from google.genai import types

MAX_OUTPUTS: Final = 5
"""Structured outputs in a row that are not valid, before the model is asked for a last time."""


class Loop:
    """
    The loop of one agent in a *session*; *first*: a message of the user's begins it.
    """

    def __init__(self, session: Session, *, first: bool) -> None:
        self.session = session
        self.asking = Asking(session, first=True, user=first)
        self.request: Any = None
        self.streams = False
        """Its responses come in pieces."""
        self._taken = False
        self._invalid = 0

    @property
    def ended(self) -> bool:
        """
        The model has answered; what is asked now is another loop.
        """
        return self.asking.final.ended == "answered"

    @property
    def over(self) -> bool:
        """
        The final answer was given: the model is asked no more.
        """
        return self.asking.final.ended in ("forced", "digest")

    def ask(self) -> None:
        """
        Tell the session of the request, and turn tools off when it is time. A choice that forces a tool holds once.
        """
        config = self.request.config
        held = config.tool_config or types.ToolConfig()
        calling = held.function_calling_config
        forces = calling is not None and calling.mode == types.FunctionCallingConfigMode.ANY
        # What an agent's own callback answered was no request.
        self.asking.failed()
        self._taken = False
        chosen = self.asking.ask("required" if forces else None)
        mode: Any = None
        if self.asking.off and config.tools:
            ends = [_only(tool) for tool in config.tools if isinstance(tool, types.Tool)]
            ends = [tool for tool in ends if tool is not None]
            mode = "AUTO" if ends else "NONE"
            if ends:
                config.tools = ends
        elif forces and chosen != "required":
            mode = "AUTO"
        if mode is not None:
            calling = types.FunctionCallingConfig(mode=mode)
            config.tool_config = held.model_copy(update={"function_calling_config": calling})

    def is_piece(self, response: Any) -> bool:
        """
        Whether *response* is a piece of what one request streams: it says nothing, and more comes or enough came.
        """
        if response.partial or not self.streams:
            return bool(response.partial)
        says = _text(response) or any(_answers(part) or part.function_call is not None for part in _parts(response))
        if says or response.error_code:
            return False
        return self._taken or (response.finish_reason is None and response.usage_metadata is None)

    def take(self, response: Any) -> tuple[str, int]:
        """
        Charge *response*; what it means, and how many calls it makes.
        """
        parts, self._taken = _parts(response), True
        made = [part.function_call.name for part in parts if part.function_call is not None]
        calls = [name for name in made if name not in ENDS]
        if not self.asking.off:
            calls = made
        answers = any(_answers(part) for part in parts) or len(calls) < len(made) or response.error_code
        meaning = self.asking.take(
            _text(response) or ("-" if answers else ""),
            len(calls),
            model=response.model_version or self.request.model or "",
            usage=response.usage_metadata,
            key=response.interaction_id or None,
        )
        return meaning, len(calls)

    def output(self, *, valid: bool) -> None:
        """
        Say whether a structured output was *valid*. The final answer is asked for after some that were not.
        """
        self._invalid = 0 if valid else self._invalid + 1
        if self.over and self._invalid == 1:
            # The first of the final answer: the model is asked once more.
            self.asking.final.ended = None
        self.asking.final.force(SILENT_CODE if self._invalid >= MAX_OUTPUTS else None)

    async def again(self, context: Any) -> Any:
        """
        Returns the model's answer when it is asked once more. Returns None if it cannot be asked.
        """
        response, self.streams = None, False
        try:
            await self.session.ledger.off_loop(self.ask)
            context.increment_llm_call_count()
            async for said in context.agent.canonical_model.generate_content_async(self.request, stream=False):
                response = response if said.partial else said
        except Exception as error:  # noqa: BLE001  whatever a client raises: the digest is an answer still
            log.error("the model could not be asked once more: %s", error, extra={"session": self.session.id})
            response = None
        finally:
            if response is None:
                await self.session.ledger.off_loop(self.asking.failed)
        return response


def _parts(response: Any) -> list[Any]:
    return (response.content and response.content.parts) or []


def _text(response: Any) -> str:
    return "".join(part.text for part in _parts(response) if part.text and not part.thought).strip()


def _only(tool: Any) -> Any:
    """
    *tool* with those functions alone by which an agent ends. Returns None if there are none.
    """
    ends = [one for one in tool.function_declarations or [] if one.name in ENDS]
    return types.Tool(function_declarations=ends) if ends else None


def _answers(part: Any) -> bool:
    return any((part.inline_data, part.file_data, part.executable_code, part.code_execution_result))
