"""
What is openai-agents' own: hand-overs, agents as tools, MCP servers, approvals, ends and failures.
"""

import asyncio
import inspect

from collections.abc import Callable
from typing import Any

import pytest


pytest.importorskip("agents")

from agents import Agent, RunConfig, RunState, function_tool
from pydantic import BaseModel

from guardrails import Budget, MemoryStore, Policy
from guardrails.integrations.openai_agents import GuardedRunner

from .behaviours.base import envelope, in_turn, search, searching
from .driver import Asked, Call, Say, Script
from .test_openai_agents import ScriptedModel, own_loop  # noqa: F401


def agent(script: Script, *functions: Callable[..., Any], name: str = "main", **more: Any) -> Agent[Any]:
    """
    An agent whose model says what *script* says.
    """
    tools = [function_tool(each) if inspect.isfunction(each) else each for each in functions]
    return Agent(name=name, model=ScriptedModel(script, []), tools=tools, **more)


def seen(made: Agent[Any]) -> list[Asked]:
    """
    What the model of an agent was asked.
    """
    return list(made.model.seen)


def outputs(result: Any) -> list[Any]:
    """
    What the model read of tools, as the host carries it.
    """
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def restless(asked: Asked) -> Say:
    """
    A model that calls whatever it is told.
    """
    return Say(calls=(search(f"q{asked.n}"),))


def runner(*guards: Any, **options: Any) -> GuardedRunner:
    """
    A runner behind *guards*; behind the policy `default` without any.
    """
    return GuardedRunner(Policy(guards) if guards else Policy.load("default"), **options)


CAP = Budget(max_calls=2)


class Answer(BaseModel):
    """
    A structured output.
    """

    number: int


# Hand-overs and agents as tools


def handed_over(to: Any, ran: list[str]) -> Agent[Any]:
    """
    An agent that makes a call and hands over.
    """
    return agent(
        in_turn(Say(calls=(search("mine"),)), Say(calls=(Call("transfer_to_other"),))), searching(ran), handoffs=[to]
    )


def other(ran: list[str]) -> Agent[Any]:
    """
    An agent that makes calls until its tools are off.
    """
    script = lambda asked: Say("the other's answer") if asked.off else restless(asked)  # noqa: E731
    return agent(script, searching(ran), name="other")


def test_an_agent_that_is_handed_over_to_goes_on_with_the_budget() -> None:
    ran: list[str] = []
    result = runner(CAP).run_sync(handed_over(other(ran), ran), "go")
    assert ran == ["mine", "q0"]
    assert result.final_output == "the other's answer"
    assert result.last_agent.name == "other"


def tools_of(sub: Agent[Any]) -> Any:
    """
    *sub* as a tool.
    """
    return sub.as_tool("other", "Ask the other.")


# The names of sessions


# Approvals


def paying(paid: list[int]) -> Any:
    """
    The tool `pay`, which a person is to approve.
    """

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an amount."""
        paid.append(amount)
        return f"paid {amount}"

    return pay


def payer(paid: list[int]) -> Agent[Any]:
    """
    An agent that pays two amounts.
    """
    calls = (Call("pay", {"amount": 5}, "c1"), Call("pay", {"amount": 6}, "c2"))
    return agent(lambda asked: Say("Done.") if asked.results else Say(calls=calls), paying(paid))


def test_a_run_with_a_name_goes_on_in_another_process() -> None:
    paid: list[int] = []
    store, options = MemoryStore(), {"run_config": RunConfig(group_id="t")}
    text = runner(CAP, store=store).run_sync(payer(paid), "go", **options).to_state().to_string()
    made = payer(paid)
    state = asyncio.run(RunState.from_string(made, text))
    for item in state.get_interruptions():
        state.approve(item)
    guarded = runner(CAP, store=store)
    assert guarded.run_sync(made, state, **options).final_output == "Done."
    assert paid == [5, 6]
    assert guarded._sessions.of("t").ledger.progress["calls_used"] == 2


def test_an_approval_inside_of_an_agent_that_is_a_tool_is_charged_once() -> None:
    paid: list[int] = []
    calls = Say(calls=(Call("pay", {"amount": 7}, "same"),))
    sub = agent(lambda asked: Say("paid it") if asked.results else calls, paying(paid), name="other")
    asks = Say(calls=(Call("other", {"input": "pay"}, "same"),))
    main = agent(lambda asked: Say("Done.") if asked.results else asks, tools_of(sub))
    guarded = runner(Budget(max_calls=10))
    options = {"run_config": RunConfig(group_id="t")}
    paused = guarded.run_sync(main, "go", **options)
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item)
    result = guarded.run_sync(main, state, **options)
    assert (result.final_output, paid) == ("Done.", [7])
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 2
