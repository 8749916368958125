"""
The guard that refuses the calls of a tool that is held.
"""

from guardrails import Policy, Tool
from guardrails.core.guards.tool_filter import Held
from guardrails.sinks import MemorySink
from tests.replaying import replay
from tests.tables import table


WHY = "its server changed its description"


def ran(tool: str, arguments: object) -> str:
    return "ran"


@table("policy", [Policy([]), Policy.load("default"), Policy.load("strict")])
def test_a_held_tool_is_refused_under_any_policy_until_it_is_declared_again(policy: Policy) -> None:
    with policy.session("s") as session:
        assert session.call("add", {"a": 1}, ran).ok
        session.calls.declare(Tool(name="add", held=WHY))
        refused = session.call("add", {"a": 2}, ran)
        assert (refused.code, refused.retryable, refused.ok) == ("held.tool", False, False)
        assert refused.message == f"`add` is held: {WHY}. It was not called."
        session.calls.declare(Tool(name="add"))
        assert session.call("add", {"a": 2}, ran).ok


def test_a_policy_that_only_observes_lets_it_run_and_records_it() -> None:
    sink = MemorySink()
    with Policy.load("observe").session("s", records=sink) as session:
        session.calls.declare(Tool(name="add", held=WHY))
        assert session.call("add", {"a": 2}, ran).ok
    assert [record["observed"] for record in sink.records if record["event"] == "call"] == [["held.tool"]]


def test_records_decide_again_what_was_held_and_what_was_no_longer() -> None:
    policy, sink = Policy.load("default"), MemorySink()
    with policy.session("s", records=sink) as session:
        for held in ("", WHY, "", "its name looks like that of `ad`"):
            session.calls.declare(Tool(name="add", held=held))
            session.call("add", {"a": held}, ran)
    replayed = list(replay(policy.chain, sink.records))
    assert [one.made["code"] for one in replayed] == [None, "held.tool", None, "held.tool"]
    assert all(one.same for one in replayed)


def test_a_policy_may_hold_a_tool_itself() -> None:
    from guardrails.core.chain import Rule

    with Policy([], rules=[Rule(match="pay_*", declared={"held": "not before the audit"})]).session("s") as session:
        assert session.call("pay_rent", {}, ran).code == "held.tool"
        assert session.call("read", {}, ran).ok


def test_tools_that_are_not_held_do_not_meet_it() -> None:
    plan = Policy.load("default").chain.plan("add")
    assert not any(isinstance(guard, Held) for guard in plan.guards)
