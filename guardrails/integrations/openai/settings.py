"""
One list of settings for all who take it.
"""

import inspect

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar

from guardrails.session.session import Session


P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")


class RequestOptions(TypedDict, total=False):
    """
    The settings that go into every request unchanged: those of the client's `create`, of either wire, that a loop does
    not make itself. Settings that the client does not know yet go into `extra_body`.
    """

    access_programs: Any
    audio: Any
    background: Any
    background_options: Any
    context_management: Any
    conversation: Any
    extra_body: Any
    extra_headers: Any
    extra_query: Any
    frequency_penalty: Any
    function_call: Any
    functions: Any
    image: Any
    include: Any
    instructions: Any
    logit_bias: Any
    logprobs: Any
    max_completion_tokens: Any
    max_output_tokens: Any
    max_tokens: Any
    max_tool_calls: Any
    metadata: Any
    modalities: Any
    moderation: Any
    n: Any
    parallel_tool_calls: Any
    prediction: Any
    presence_penalty: Any
    previous_response_id: Any
    prompt: Any
    prompt_cache_key: Any
    prompt_cache_options: Any
    prompt_cache_retention: Any
    reasoning: Any
    reasoning_effort: Any
    response_format: Any
    safety_identifier: Any
    seed: Any
    service_tier: Any
    stop: Any
    store: Any
    stream_options: Any
    temperature: Any
    text: Any
    timeout: Any
    top_logprobs: Any
    top_p: Any
    truncation: Any
    user: Any
    verbosity: Any
    web_search_options: Any


def with_settings_of(
    takes: Callable[Concatenate[Session, P], object],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, Session, P], R]]:
    """
    Returns a decorator for a function of a client, a session and `**settings`. For type checkers and
    `inspect.signature` its settings are those that *takes* has after its session.
    """

    def taking(function: Callable[..., R]) -> Callable[Concatenate[Any, Session, P], R]:
        client, session, *_ = inspect.signature(function).parameters.values()
        _, *settings = inspect.signature(takes).parameters.values()
        own = inspect.signature(function).replace(parameters=[client, session, *settings])
        function.__signature__ = own  # type: ignore[attr-defined]
        return function

    return taking
