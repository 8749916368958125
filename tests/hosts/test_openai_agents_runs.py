"""
What is openai-agents' own: hand-overs, agents as tools, MCP servers, approvals, ends and failures.
"""

import asyncio
import inspect

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest


pytest.importorskip("agents")

from agents import (
    Agent,
    Handoff,
    ModelRetrySettings,
    ModelSettings,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    handoff,
)
from pydantic import BaseModel

from guardrails import Budget, MemorySink, MemoryStore, Policy
from guardrails.integrations.openai_agents import GuardedRunner

from .behaviours.base import asearching, envelope, in_turn, search, searching
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


def test_a_handoff_object_is_followed() -> None:
    ran: list[str] = []
    runner(CAP).run_sync(handed_over(handoff(other(ran)), ran), "go")
    assert ran == ["mine", "q0"]


def test_an_agent_that_is_known_at_the_hand_over_only_is_guarded_too() -> None:
    ran: list[str] = []

    async def choose(context: Any, text: str) -> Any:
        return other(ran)

    made = Handoff(
        tool_name="transfer_to_other",
        tool_description="",
        input_json_schema={},
        on_invoke_handoff=choose,
        agent_name="other",
    )
    result = runner(CAP).run_sync(handed_over(made, ran), "go")
    assert ran == ["mine", "q0"]
    assert result.final_output == "the other's answer"


def test_a_choice_that_forces_a_tool_holds_for_the_first_request_of_each_agent() -> None:
    forced = ModelSettings(tool_choice="required")
    last = agent(
        lambda asked: restless(asked) if asked.choice == "required" else Say("Done."),
        searching([]),
        name="other",
        model_settings=forced,
        reset_tool_choice=False,
    )
    first = agent(in_turn(Say(calls=(Call("transfer_to_other"),))), handoffs=[last], model_settings=forced)
    runner().run_sync(first, "go")
    assert [asked.choice for asked in seen(first) + seen(last)] == ["required", "required", None]


def test_an_agent_that_is_a_tool_has_a_share_of_the_budget() -> None:
    ran: list[str] = []
    sub = other(ran)
    main = agent(in_turn(Say(calls=(Call("other", {"input": "look"}),))), tools_of(sub))
    sink = MemorySink()
    result = runner(Budget(max_calls=9), records=sink).run_sync(main, "go")
    assert len(ran) == 7  # The last call is the asking agent's.
    assert envelope(outputs(result)[0])["result"] == "the other's answer"
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 8
    assert len({record["session_id"] for record in sink.records}) == 2


def tools_of(sub: Agent[Any]) -> Any:
    """
    *sub* as a tool.
    """
    return sub.as_tool("other", "Ask the other.")


def test_an_agent_that_is_a_tool_is_asked_by_calls_of_one_id_in_two_runs() -> None:
    guarded, group = runner(), RunConfig(group_id="t")
    sub = agent(in_turn(Say("one"), Say("two")), name="other")
    told = []
    for task in ("look", "look again"):
        main = agent(in_turn(Say(calls=(Call("other", {"input": task}, "call_0"),))), tools_of(sub))
        told += outputs(guarded.run_sync(main, "go", run_config=group))
    assert [envelope(each)["result"] for each in told] == ["one", "two"]


def test_an_agent_that_is_a_tool_and_fails_is_data() -> None:
    async def down(asked: Asked) -> Say:
        raise ConnectionError("the model is down")

    def fails(asked: Asked) -> Say:
        raise ConnectionError("the model is down")

    main = agent(in_turn(Say(calls=(Call("other", {"input": "look"}),))), tools_of(agent(fails, name="other")))
    result = runner().run_sync(main, "go")
    assert envelope(outputs(result)[0])["error_type"] == "connection"
    assert result.final_output == "Done."


# The names of sessions


def test_a_run_without_a_name_is_forgotten_when_it_ends() -> None:
    store = MemoryStore()
    guarded = runner(store=store)
    guarded.run_sync(agent(in_turn(Say(calls=(search("x"),))), searching([])), "go")
    assert not list(guarded._sessions._kept)


@pytest.mark.parametrize(
    "options",
    [{"run_config": RunConfig(group_id="t")}, {"run_config": {"group_id": "t"}}, {"session": SQLiteSession("t")}],
    ids=["group", "group of a mapping", "session"],
)
def test_the_group_or_the_session_names_the_session(options: dict[str, Any]) -> None:
    sink = MemorySink()
    guarded = runner(records=sink)
    for _ in range(2):
        guarded.run_sync(agent(in_turn(Say(calls=(search("x"),))), searching([])), "go", **options)
    assert {record["session_id"] for record in sink.records} == {"t"}


def test_runs_at_once_of_one_agent_have_sessions_of_their_own() -> None:
    made = agent(lambda asked: Say("Done.") if asked.results else restless(asked), asearching([]))
    sink = MemorySink()
    guarded = runner(Budget(max_calls=1), records=sink)

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(guarded.run(made, "go") for _ in range(8)))

    assert {result.final_output for result in asyncio.run(all_of_them())} == {"Done."}
    assert len({record["session_id"] for record in sink.records}) == 8


def test_a_plain_run_of_an_agent_that_was_guarded_is_as_before() -> None:
    made = agent(in_turn(Say(calls=(search("x"),)), Say("Done."), Say(calls=(search("x"),))), searching([]))
    guarded = runner()
    guarded.run_sync(made, "go")
    tools = list(made.tools)
    guarded.run_sync(made, "go")
    assert made.tools == tools
    assert outputs(Runner.run_sync(agent_of(made), "go")) == ["nothing found"]


def agent_of(made: Agent[Any]) -> Agent[Any]:
    """
    The same agent with a model that begins anew.
    """
    return made.clone(model=ScriptedModel(in_turn(Say(calls=(search("x"),))), []))


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


def test_a_run_without_a_name_goes_on_in_its_session_after_a_person_said_yes() -> None:
    paid: list[int] = []
    sink = MemorySink()
    guarded, made = runner(Budget(max_calls=1), records=sink), payer(paid)
    paused = guarded.run_sync(made, "go")
    assert (len(paused.interruptions), paid) == (2, [])
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item)
    result = guarded.run_sync(made, state)
    assert (result.final_output, paid) == ("Done.", [5])
    assert len({record["session_id"] for record in sink.records}) == 1
    assert not guarded._parked


def test_a_streamed_run_without_a_name_goes_on_in_its_session_too() -> None:
    paid: list[int] = []
    guarded, made = runner(Budget(max_calls=1)), payer(paid)

    async def both() -> Any:
        result = guarded.run_streamed(made, "go")
        async for _ in result.stream_events():
            pass
        state = result.to_state()
        for item in result.interruptions:
            state.approve(item)
        result = guarded.run_streamed(made, state)
        async for _ in result.stream_events():
            pass
        return result

    assert asyncio.run(both()).final_output == "Done."
    assert paid == [5]


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
    assert guarded._sessions.of("t").progress["calls_used"] == 2


def test_an_approval_inside_of_an_agent_that_is_a_tool_is_charged_once() -> None:
    paid: list[int] = []
    calls = Say(calls=(Call("pay", {"amount": 7}, "same"),))
    sub = agent(lambda asked: Say("paid it") if asked.results else calls, paying(paid), name="other")
    asks = Say(calls=(Call("other", {"input": "pay"}, "same"),))
    main = agent(lambda asked: Say("Done.") if asked.results else asks, tools_of(sub))
    guarded = runner(Budget(max_calls=10))
    paused = guarded.run_sync(main, "go")
    state = paused.to_state()
    for item in paused.interruptions:
        state.approve(item)
    result = guarded.run_sync(main, state)
    assert (result.final_output, paid) == ("Done.", [7])
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 2


def test_an_approval_that_depends_on_arguments_is_asked_as_the_host_asks() -> None:
    async def needs(context: Any, arguments: Any, call: str) -> bool:
        return False

    def look(query: str, limit: int = 3) -> str:
        """Look something up."""
        return query

    calls = Say(calls=(Call("look", {"query": "a"}), Call("look", {"query": "b", "limit": 1})))
    asked = [
        [
            item.arguments
            for item in each.run_sync(
                agent(in_turn(calls), function_tool(look, needs_approval=needs)), "go"
            ).interruptions
        ]
        for each in (Runner, runner())
    ]
    assert asked[0] == asked[1] == ['{"query": "a"}']


def test_a_run_in_a_tool_has_a_share_of_the_budget() -> None:
    ran: list[str] = []
    guarded = runner(Budget(max_calls=9))

    async def look(task: str) -> str:
        """Let another agent look."""
        return str((await guarded.run(other(ran), task)).final_output)

    main = agent(in_turn(Say(calls=(Call("look", {"task": "x"}),))), look)
    result = guarded.run_sync(main, "go")
    assert len(ran) == 7
    assert envelope(outputs(result)[0])["progress"]["calls_used"] == 8


def test_a_request_that_is_made_anew_keeps_its_forced_choice() -> None:
    failures = iter([ConnectionError("try again")])

    def script(asked: Asked) -> Say:
        for failure in failures:
            raise failure
        return restless(asked) if asked.choice == "required" else Say("Done.")

    retry = ModelRetrySettings(max_retries=1, policy=lambda _: True, backoff={"initial_delay": 0.0})
    made = agent(script, searching([]), model_settings=ModelSettings(tool_choice="required", retry=retry))
    runner().run_sync(made, "go")
    assert [asked.choice for asked in seen(made)] == ["required", "required", None]


def said_after(says: list[Say], asked: Asked) -> Say:
    return says[len(asked.results)]


def test_runs_of_two_users_whose_calls_have_one_id_go_on_each_in_its_own_session() -> None:
    paid: list[int] = []
    guarded, pays = runner(Budget(max_calls=9)), Say(calls=(Call("pay", {"amount": 8}, "call_0"),))

    async def both() -> list[int]:
        waiting, used = [], []
        for says in ([Say(calls=(search("mine"),)), pays, Say("Done.")], [pays, Say("Done.")]):
            made = agent(partial(said_after, says), searching([]), paying(paid))
            waiting.append((made, (await guarded.run(made, "go")).to_state()))
        for made, state in waiting:
            again = await RunState.from_string(made, state.to_string())
            for item in again.get_interruptions():
                again.approve(item)
            result = await guarded.run(made, again)
            used.append(envelope(outputs(result)[-1])["progress"]["calls_used"])
        return used

    assert asyncio.run(both()) == [2, 1]
    assert paid == [8, 8]
    assert not guarded._parked
