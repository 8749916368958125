"""
Several agents in one app: hand-overs, agents as tools, loops of agents.
"""

import warnings

from typing import Any

import pytest

from google.adk.tools import AgentTool, FunctionTool
from google.adk.workflow import START, Workflow

from guardrails import Budget, Policy
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.behaviours.base import in_turn, roaming, search, searching, stuck
from tests.hosts.driver import Asked, Call, Say

from .driver import Driver, agent_of


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent


def ran_by(policy: Any, agent: Any, seen: list[Asked], **more: Any) -> Any:
    done = Driver().ran(agent, GuardrailsPlugin(policy, named=more.pop("named", None)), seen, thread="t", **more)
    if done.error is not None:
        raise done.error
    assert done.unanswered == []
    return done


class Agents:
    def test_a_hand_over_passes_and_both_agents_share_the_session(self) -> None:
        ran: list[str] = []
        seen: list[Asked] = []
        clerk = agent_of(roaming, [searching(ran)], name="clerk", seen=seen)
        first = in_turn(Say(calls=(search("a"),)), Say(calls=(Call("transfer_to_agent", {"agent_name": "clerk"}),)))
        policy = Policy([Budget(max_calls=3)])
        done = ran_by(policy, agent_of(first, [searching(ran)], sub_agents=[clerk]), [])
        assert ran == ["a", "q0", "q1"]
        assert done.answer == "I know nothing of it."
        assert policy.session("t").ledger.progress["calls_used"] == 3

    def test_an_agent_as_a_tool_gets_its_share_and_gives_back_what_is_left(self) -> None:
        ran: list[str] = []
        helper = agent_of(roaming, [searching(ran)], name="helper")
        script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
        policy = Policy([Budget(max_calls=9)])
        ran_by(policy, agent_of(script, [AgentTool(helper)]), [])
        assert len(ran) == 7
        session = policy.session("t")
        assert session.ledger.progress["calls_left"] == 1
        assert session.ledger.read(lambda state, _: dict(state.pending)) == {}

    @pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
    def test_a_loop_of_agents_whose_tools_are_off_ends(self) -> None:
        seen: list[Asked] = []
        ran: list[str] = []
        loop = LoopAgent(name="loop", sub_agents=[agent_of(stuck, [searching(ran)], seen=seen)])
        done = ran_by(Policy.load("default"), loop, seen)
        assert 1 <= len(ran) <= 3
        assert len(seen) <= 9
        assert done.answer

    @pytest.mark.filterwarnings("ignore:(Sequential|Parallel)Agent is deprecated:DeprecationWarning")
    @pytest.mark.parametrize("kind", [SequentialAgent, ParallelAgent])
    def test_agents_after_and_beside_each_other_share_the_budget_and_each_answers(self, kind: Any) -> None:
        ran: list[str] = []
        agents = [agent_of(roaming, [searching(ran)], name=f"a{n}") for n in range(2)]
        ran_by(Policy([Budget(max_calls=5)]), kind(name="all", sub_agents=agents), [])
        assert len(ran) == 5

    def test_a_workflow_is_guarded_in_its_agents_and_not_in_its_own_steps(self) -> None:
        ran: list[str] = []
        got: list[Any] = []

        def look_up(node_input: Any) -> str:
            """Look it up."""
            ran.append("step")
            return "found"

        def keep(node_input: Any) -> dict[str, Any]:
            return {"node_input": node_input}

        def end(node_input: Any) -> None:
            got.append(node_input)

        policy = Policy([Budget(max_calls=2)])
        edges = [(START, agent_of(roaming, [searching(ran)]), keep, FunctionTool(look_up), end)]
        ran_by(policy, Workflow(name="all", edges=edges), [])
        assert (ran, got) == (["q0", "q1", "step"], ["found"])

    def test_users_whose_sessions_have_one_id_are_told_apart_by_a_name_of_ones_own(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        named = lambda session: f"{session.user_id}/{session.id}"  # noqa: E731
        ran_by(policy, agent_of(roaming, [searching(ran)]), [], named=named)
        assert policy.session("t").ledger.progress["calls_used"] == 0
        assert GuardrailsPlugin(policy).session("user/t").ledger.progress["calls_used"] == 2
