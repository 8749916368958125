"""
The keywords that type checkers know are those that are taken.
"""

import ast
import dataclasses
import inspect

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

import guardrails

from guardrails import Budget, Envelope, Policy, SessionError, Tool
from guardrails.core.envelope.content import FIELDS, SETTABLE, Fields, More
from guardrails.core.guards.limits.amounts import LOOPS, Amounts, internal
from guardrails.core.guards.limits.budget_settings import LIMITS, SEEDS
from guardrails.core.tools.declarations import Declarations
from guardrails.policy.sessions import SessionOptions


def keywords(function: Callable[..., Any]) -> set[str]:
    return {
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)
    }


def test_amounts_are_the_limits_by_each_of_their_names() -> None:
    assert {*Amounts.__annotations__} == {*LIMITS, "max_children", *LOOPS, *SEEDS}
    for name in Amounts.__annotations__:
        assert internal({name: 1})
    with pytest.raises(SessionError, match=r"`max_cals` is no limit: use max_calls, max_turns, .* or max_steps"):
        internal({"max_cals": 1})


def test_amounts_have_the_types_of_the_settings_or_finer_ones() -> None:
    settings, amounts = get_type_hints(Budget), get_type_hints(Amounts)
    for name in ("max_calls", "max_turns", "max_tokens", "max_elapsed", "max_children"):
        assert settings[name] == amounts[name]
    assert {amounts[name] for name in ("max_cost_usd", "max_total_cost_usd")} == {amounts["max_cost_usd"]}


def test_declarations_are_the_fields_of_a_tool_with_their_types() -> None:
    fields = get_type_hints(Tool)
    names = [field.name for field in dataclasses.fields(Tool) if field.name != "parameters"]
    assert get_type_hints(Declarations) == {name: fields[name] for name in names}


def test_the_fields_of_an_envelope_that_code_may_set_are_all_but_what_only_a_chain_knows() -> None:
    chain = {"status", "results", "result", "limit_reached", "previous_result", "truncated", "original_bytes", "handle"}
    chain |= {"attempts"}
    assert SETTABLE == {*Fields.__annotations__} == {*FIELDS} - chain
    assert {*Fields.__annotations__} - {*More.__annotations__} == {"error_type", "error_message"}
    envelope = Envelope.success(1)
    assert all(hasattr(envelope, name) for name in SETTABLE)


def test_the_options_of_a_session_are_those_of_policy_session() -> None:
    assert {*SessionOptions.__annotations__} == keywords(Policy.session) - {"self", "name"}


def test_every_adapter_says_which_options_it_hands_on() -> None:
    untold = []
    for path in sorted(Path(guardrails.__file__).parent.rglob("*.py")):
        for made in (one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.FunctionDef)):
            handed = [one for one in ast.walk(made) if isinstance(one, ast.Call) and handed_on(one, "guarded")]
            if handed and made.args.kwarg is not None and "SessionOptions" not in ast.unparse(made.args.kwarg):
                untold.append(f"{path}:{made.lineno}")
    assert untold == []


def handed_on(call: ast.Call, name: str) -> bool:
    """
    Whether *call* gets what *name* is, and keywords that its caller was given.
    """
    first = bool(call.args) and ast.unparse(call.args[0]) == name
    return first and any(keyword.arg is None for keyword in call.keywords)


def test_the_options_of_a_request_are_those_of_the_client_that_a_loop_does_not_make() -> None:
    pytest.importorskip("openai")
    from openai.resources.chat.completions import Completions
    from openai.resources.responses import Responses

    from guardrails.integrations.openai.conversation import Conversation
    from guardrails.integrations.openai.settings import RequestOptions

    own = keywords(Conversation) | {"self", "input"}
    assert {*RequestOptions.__annotations__} == (keywords(Completions.create) | keywords(Responses.create)) - own


@pytest.mark.parametrize("kind", ["ResponsesToolRunner", "AsyncResponsesToolRunner"])
def test_the_options_of_a_tool_runner_are_those_of_the_sdk(kind: Literal["ResponsesToolRunner"]) -> None:
    pytest.importorskip("openai")
    from openai.lib import responses_tool_runner

    from guardrails.integrations.tool_runner.options import RunnerOptions, TurnOptions

    sdk = getattr(responses_tool_runner, kind)
    assert {*RunnerOptions.__annotations__} == keywords(sdk) - {"functions"}
    assert {*TurnOptions.__annotations__} == keywords(sdk.iterate) - {"self", "client", "params", "max_steps"}
    assert keywords(sdk.run) == keywords(sdk.iterate)
