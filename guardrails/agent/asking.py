"""
The loop of an agent: streamed, its conversation cut if it grows too long for the model.
"""

import sys

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from guardrails.core.values.errors import ResponseFailed
from guardrails.integrations.openai import run
from guardrails.integrations.openai.conversation import WIRES
from guardrails.integrations.openai.heard import NO_STREAM
from guardrails.policy.registry import Registry
from guardrails.session.session import Session
from guardrails.session.turns.loop import LoopResult

from .compaction import Compaction, too_long
from .conversations.kept import Wire
from .settings import Settings


if TYPE_CHECKING:
    from openai import OpenAI


class Asking:
    """
    Asks the model of *settings* through *client* until it answers; *say* is told of what is cut.
    """

    def __init__(self, client: "OpenAI", settings: Settings, wire: Wire, say: Callable[[str], object]) -> None:
        self._client = client
        self._settings = settings
        self._wire = wire
        self._say = say
        self._stream = settings.stream
        self._compaction = Compaction(WIRES[wire], settings.model, settings.context, say)

    @property
    def requests(self) -> int:
        """
        The number of requests that the model was sent by now.
        """
        return self._compaction.requests

    def loop(
        self,
        session: Session,
        messages: list[Any],
        tools: tuple[Registry, ...],
        on_text: Callable[[str], object] | None = None,
    ) -> LoopResult:
        """
        Returns the result of `run`. A server that does not stream is asked for whole responses. A server that says that
        the conversation is too long is asked with less of it.
        """
        iterations = 0
        while True:
            begun = len(messages)
            try:
                result = run(
                    self._client,
                    session,
                    model=self._settings.model,
                    messages=messages,
                    tools=tools,
                    wire=self._wire,
                    max_tool_iterations=max(self._settings.max_iterations - iterations, 1),
                    stream=self._stream,
                    on_text=on_text,
                    on_usage=self._compaction.told,
                    compact=self._compaction,
                )
            except Exception as error:
                if self._stream and isinstance(error, ResponseFailed) and error.code == NO_STREAM:
                    self._stream = False
                    self._say(
                        "   note: the endpoint does not stream: it is asked for whole responses; see `--no-stream`"
                    )
                elif _of_the_endpoint(error) and too_long(error) and self._compaction.shrink():
                    self._say(
                        "   note: the endpoint says that the conversation is too long: it is asked with less of it"
                    )
                else:
                    raise
                iterations += self._turns_in(messages[begun:])
            else:
                return replace(result, requests=self.requests, iterations=iterations + result.iterations)

    def _turns_in(self, messages: Sequence[Any]) -> int:
        """
        Returns the number of responses in *messages* that have results.
        """
        answers = [WIRES[self._wire].answers(message) is not None for message in messages]
        return sum(1 for before, after in pairwise([False, *answers]) if after and not before)


def _of_the_endpoint(error: Exception) -> bool:
    """
    Returns whether *error* is the client's, or what the loop made of a reply: no tool's and no store's.
    """
    openai = sys.modules.get("openai")
    return isinstance(error, ResponseFailed) or (openai is not None and isinstance(error, openai.APIError))
