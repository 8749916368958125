"""
Calls of pydantic-ai whose results come later: external tools, deferred calls, approvals.
"""

import subprocess
import sys

from pathlib import Path
from typing import Any

import pytest

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ExternalToolset

from guardrails import Budget, Policy, SqliteStore
from guardrails.integrations.pydantic_ai import GuardrailsCapability
from tests.hosts.behaviours.base import envelope, in_turn, search, searching
from tests.hosts.driver import Call, Say

from .driver import FIVE, agent, run, told


DEPLOY = ToolDefinition(
    name="deploy", parameters_json_schema={"type": "object", "properties": {"v": {"type": "string"}}}
)
deployed = Say(calls=(Call("deploy", {"v": "1"}, "c1"),))


def deployed_once(asked: Any) -> Say:
    """
    A model that deploys, and is done once it reads of it.
    """
    return Say("Done.") if asked.results else deployed


RESUMED = """
import sys
from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter
from tests.hosts.pydantic_ai.later import over_sqlite, run

one, cap = over_sqlite(sys.argv[1])
history = ModelMessagesTypeAdapter.validate_json(open(sys.argv[2], "rb").read())
done = run(one, None, message_history=history, deferred_tool_results=DeferredToolResults(approvals={"c1": True}))
print(done.output, cap.session("t").ledger.progress["calls_used"], cap.session("t").ledger.read(lambda state, _: len(state.pending)))
"""


def over_sqlite(path: str) -> tuple[Agent[Any, Any], GuardrailsCapability]:
    """
    An agent whose session is in a file, with a tool that a person approves.
    """

    def deploy(v: str) -> str:
        return f"deployed {v}"

    cap = GuardrailsCapability(FIVE, store=SqliteStore(path))
    tool = Tool(deploy, requires_approval=True)
    return agent(deployed_once, tool, guarded=cap, output_type=[str, DeferredToolRequests]), cap


class Later:
    """
    Each is decided about before anyone is asked, and charged once.
    """

    def test_an_external_tool_is_charged_once_and_its_result_reads_as_an_envelope(self) -> None:
        cap = GuardrailsCapability(FIVE)
        outside = {"toolsets": [ExternalToolset([DEPLOY])], "output_type": [str, DeferredToolRequests]}
        waits = run(agent(deployed_once, guarded=cap, **outside))
        assert [call.tool_name for call in waits.output.calls] == ["deploy"]
        session = cap.session(waits.conversation_id)
        assert session.ledger.progress["calls_used"] == 1

        results = DeferredToolResults(calls={"c1": {"ok": True}})
        done = run(
            agent(deployed_once, guarded=cap, **outside),
            None,
            message_history=waits.all_messages(),
            deferred_tool_results=results,
        )
        assert envelope(told(done)[0])["result"] == {"ok": True}
        assert session.ledger.progress["calls_used"] == 1
        assert session.ledger.read(lambda state, _: dict(state.pending)) == {}

    def test_a_call_that_a_person_denies_is_not_counted(self) -> None:
        cap = GuardrailsCapability(FIVE)
        ran: list[str] = []

        def deploy(v: str) -> str:
            ran.append(v)
            return "deployed"

        one = agent(
            deployed_once,
            Tool(deploy, requires_approval=True),
            guarded=cap,
            output_type=[str, DeferredToolRequests],
        )
        waits = run(one)
        denied = DeferredToolResults(approvals={"c1": ToolDenied("not today")})
        done = run(one, None, message_history=waits.all_messages(), deferred_tool_results=denied)
        assert (told(done), done.output, ran) == (["not today"], "Done.", [])
        assert cap.session(waits.conversation_id).ledger.progress["calls_used"] == 0

    def test_a_deferred_call_that_is_refused_asks_nobody(self) -> None:
        policy = Policy([Budget(max_calls=1)])
        script = in_turn(Say(calls=(search("x"),)), deployed)
        one = agent(
            script,
            searching([]),
            guarded=policy,
            toolsets=[ExternalToolset([DEPLOY])],
            output_type=[str, DeferredToolRequests],
        )
        done = run(one)
        assert done.output == "Done."
        assert envelope(told(done)[1])["code"] == "budget.max_calls"

    @pytest.mark.system
    def test_an_approved_call_runs_in_another_process_and_is_charged_once(self, tmp_path: Path) -> None:
        one, cap = over_sqlite(str(tmp_path / "state.db"))
        waits = run(one, conversation_id="t")
        assert cap.session("t").ledger.progress["calls_used"] == 1
        (tmp_path / "history.json").write_bytes(ModelMessagesTypeAdapter.dump_json(waits.all_messages()))
        command = [sys.executable, "-c", RESUMED, str(tmp_path / "state.db"), str(tmp_path / "history.json")]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3])
        assert ran.stdout.split() == ["Done.", "1", "0"]
