"""
Several agents in one app: hand-overs, agents as tools, loops of agents.
"""

import json
import warnings

from typing import Any

import pytest

from google.adk.tools import AgentTool, FunctionTool, exit_loop
from google.adk.workflow import START, Workflow

from guardrails import Budget, Duplicates, Policy
from guardrails.core.values.errors import SessionError
from guardrails.integrations.google_adk import GuardrailsPlugin
from tests.hosts.behaviours.base import in_turn, roaming, search, searching, stuck
from tests.hosts.driver import Asked, Call, Say

from .driver import Driver, agent_of


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent


def ran_by(policy: Any, agent: Any, seen: list[Asked], **more: Any) -> Any:
    options = {name: more.pop(name) for name in ("share", "named") if name in more}
    done = Driver().ran(agent, GuardrailsPlugin(policy, **options), seen, thread="t", **more)
    if done.error is not None:
        raise done.error
    assert done.unanswered == []
    return done


def handing(name: str) -> Any:
    """
    A model that hands over to *name* until its tools are off.
    """
    return lambda asked: Say("Enough.") if asked.off else Say(calls=(Call("transfer_to_agent", {"agent_name": name}),))


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
        assert policy.session("t").progress["calls_used"] == 3

    def test_agents_that_hand_over_without_end_are_stopped(self) -> None:
        seen: list[Asked] = []
        clerk = agent_of(handing("agent"), [], name="clerk", seen=seen)
        boss = agent_of(handing("clerk"), [], seen=seen, sub_agents=[clerk])
        done = ran_by(Policy.load("default"), boss, seen)
        assert len(seen) == 12
        assert done.answer == "Enough."

    def test_a_look_of_the_parent_does_not_refuse_that_of_an_agent_as_a_tool(self) -> None:
        ran: list[str] = []
        helper = agent_of(in_turn(Say(calls=(search("x"),))), [searching(ran)], name="helper")
        script = in_turn(Say(calls=(search("x"),)), Say(calls=(Call("helper", {"request": "look"}),)))
        policy = Policy([Duplicates(), Budget(max_calls=9)])
        done = ran_by(policy, agent_of(script, [searching(ran), AgentTool(helper)]), [])
        assert ran == ["x", "x"]
        assert json.loads(done.results[-1])["result"] == "Done."

    def test_an_agent_as_a_tool_gets_its_share_and_gives_back_what_is_left(self) -> None:
        ran: list[str] = []
        helper = agent_of(roaming, [searching(ran)], name="helper")
        script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
        policy = Policy([Budget(max_calls=9)])
        ran_by(policy, agent_of(script, [AgentTool(helper)]), [], share=0.25)
        assert len(ran) == 7
        session = policy.session("t")
        assert session.progress["calls_left"] == 1
        assert session._read(lambda state, _: dict(state.pending)) == {}

    def test_an_agent_as_a_tool_whose_model_fails_gives_its_share_back(self) -> None:
        def broken(asked: Asked) -> Say:
            raise ConnectionError("overloaded")

        script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
        policy = Policy([Budget(max_calls=4)])
        done = ran_by(policy, agent_of(script, [AgentTool(agent_of(broken, [], name="helper"))]), [])
        assert json.loads(done.results[0])["status"] == "error"
        assert policy.session("t").progress["calls_left"] == 3
        assert done.answer == "Done."

    def test_an_agent_inside_an_agent_inside_an_agent_has_a_share_of_a_share(self) -> None:
        ran: list[str] = []
        inner = agent_of(roaming, [searching(ran)], name="inner")
        middle = agent_of(in_turn(Say(calls=(Call("inner", {"request": "look"}),))), [AgentTool(inner)], name="middle")
        script = in_turn(Say(calls=(Call("middle", {"request": "look"}),)))
        policy = Policy([Budget(max_calls=9)])
        done = ran_by(policy, agent_of(script, [AgentTool(middle)]), [])
        assert len(ran) == 6
        assert policy.session("t").progress["calls_used"] == 8
        assert done.answer == "Done."

    def test_a_share_is_a_part_or_all_of_it(self) -> None:
        for share in (0, 1.5, -1):
            with pytest.raises(SessionError, match="above 0"):
                GuardrailsPlugin(Policy([]), share=share)

    def test_an_agent_as_a_tool_that_is_shown_as_it_is_keeps_its_words(self) -> None:
        helper = agent_of(in_turn(Say("Sunny.")), [], name="helper")
        script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
        done = ran_by(Policy.load("default"), agent_of(script, [AgentTool(helper, skip_summarization=True)]), [])
        assert json.loads(done.results[0]) == {"result": "Sunny."}

    @pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
    def test_a_loop_of_agents_whose_tools_are_off_ends(self) -> None:
        seen: list[Asked] = []
        ran: list[str] = []
        loop = LoopAgent(name="loop", sub_agents=[agent_of(stuck, [searching(ran)], seen=seen)])
        done = ran_by(Policy.load("default"), loop, seen)
        assert 1 <= len(ran) <= 3
        assert len(seen) <= 9
        assert done.answer

    @pytest.mark.filterwarnings("ignore:LoopAgent is deprecated:DeprecationWarning")
    def test_a_loop_of_agents_is_left_by_its_tool_also_with_tools_off_and_again_in_the_next_run(self) -> None:
        def script(asked: Asked) -> Say:
            return Say(calls=(search(f"q{asked.n}") if "search" in asked.tools else Call("exit_loop"),))

        policy = Policy([Budget(max_calls=1), Duplicates()])
        seen: list[Asked] = []
        ran: list[str] = []
        for _ in range(2):
            loop = LoopAgent(name="loop", sub_agents=[agent_of(script, [searching(ran), exit_loop], seen=seen)])
            ran_by(policy, loop, seen)
        assert ran == ["q0"]
        assert len(seen) == 3
        assert seen[-1].tools == ("exit_loop",)

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

    def test_an_agent_that_has_a_task_ends_it_with_tools_off(self) -> None:
        def boss(asked: Asked) -> Say:
            return Say("Done.") if asked.results else Say(calls=(Call("clerk", {"request": "do it"}),))

        def clerk(asked: Asked) -> Say:
            call = search(f"q{asked.n}") if "search" in asked.tools else Call("finish_task", {"result": "found"})
            return Say(calls=(call,))

        ran: list[str] = []
        helper = agent_of(clerk, [searching(ran)], name="clerk", mode="task")
        done = ran_by(Policy([Budget(max_calls=2)]), agent_of(boss, [], sub_agents=[helper]), [])
        assert (ran, done.answer) == (["q0", "q1"], "Done.")

    def test_an_agent_that_is_run_inline_shares_the_session(self) -> None:
        ran: list[str] = []
        helper = agent_of(roaming, [searching(ran)], name="helper", mode="single_turn")
        script = in_turn(Say(calls=(Call("helper", {"request": "look"}),)))
        policy = Policy([Budget(max_calls=3)])
        done = ran_by(policy, agent_of(script, [], sub_agents=[helper]), [])
        assert len(ran) == 2
        assert json.loads(done.results[-1])["result"] == "I know nothing of it."

    def test_users_whose_sessions_have_one_id_are_told_apart_by_a_name_of_ones_own(self) -> None:
        ran: list[str] = []
        policy = Policy([Budget(max_calls=2)])
        named = lambda session: f"{session.user_id}/{session.id}"  # noqa: E731
        ran_by(policy, agent_of(roaming, [searching(ran)]), [], named=named)
        assert policy.session("t").progress["calls_used"] == 0
        assert GuardrailsPlugin(policy).session("user/t").progress["calls_used"] == 2

    def test_nothing_is_asked_of_an_agent_without_tools(self) -> None:
        seen: list[Asked] = []
        done = ran_by(Policy.load("default"), agent_of(in_turn(Say("Hello.")), [], seen=seen), seen)
        assert (done.answer, len(seen)) == ("Hello.", 1)
