"""
The guard of shell commands: what it denies, what it asks about, what it lets pass, and why.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrails import Policy, PolicyError, Shell, Tool
from guardrails.core.chain import Rule
from guardrails.core.commands import read, syntax
from guardrails.core.guards.base import Facts
from guardrails.core.state import SessionState
from guardrails.core.values.errors import MissingExtra
from guardrails.core.values.types import Denial, ToolCall
from tests.tables import table


ROOT = Path(__file__).parents[3]
BASH, SPLIT = Tool(name="bash", commands=("command",)), Tool(name="bash", commands=("command+args",))


def listed(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


SHIPPED = Shell(deny=tuple(listed("policies/shell.yaml")["shell"]["deny"]))
AGENT = Shell(ask=tuple(listed("policies/agent.yaml")["shell"]["ask"]))
COMMANDS, HONEST, ACCIDENTS = (
    listed(f"tests/core/commands/{name}.yaml") for name in ("commands", "honest", "accidents")
)
CODES = listed("tests/core/guards/shell.yaml")
HARMLESS = [*HONEST["plain"], *HONEST["other"]]


def judged(guard: Shell, command: object, **others: object) -> Denial | None:
    given, tool = {"command": command, **others}, SPLIT if others else BASH
    said = guard.check(ToolCall(tool.name, given, "1", b"1", None), SessionState(), None, Facts(0, tool))
    assert said is None or isinstance(said, Denial)
    return said


def code(guard: Shell, command: object, **others: object) -> str | None:
    said = judged(guard, command, **others)
    return None if said is None else said.code


@table("command", CODES["wrecks"])
def test_d7_what_wrecks_the_machine_is_denied(command: str) -> None:
    said = judged(SHIPPED, command)
    assert said is not None
    assert said.details["error_type"] == "permission"


def test_d7_most_of_the_list_of_attacks_is_denied() -> None:
    attacks = [command for group in COMMANDS["denied"].values() for command in group]
    assert len(attacks) == 215
    # A score and no gate: what is left is hidden by quoting of quoting, or in another language.
    assert sum(judged(SHIPPED, command) is not None for command in attacks) >= 180


@table(("guard", "commands", "expected"), [
    (SHIPPED, [*(c for group in COMMANDS["allowed"].values() for c in group), *HARMLESS, *ACCIDENTS["asked"]], None),
    (AGENT, [*ACCIDENTS["passes"], *HARMLESS], None),
    # What an agent does by accident and cannot be undone.
    (AGENT, ACCIDENTS["asked"], "approve.pending"),
])  # fmt: skip
def test_an_honest_command_passes_and_what_lasts_is_asked_about(guard: Shell, commands: Any, expected: Any) -> None:
    assert [command for command in commands if code(guard, command) != expected] == []


LISTED = Shell(allow=("git status", "ls *", "cat src/*", "timeout *"), deny=("ls /",))


@table(("guard", "cases"), [
    (SHIPPED, CODES["shipped"]), (LISTED, CODES["listed"]), (Shell(allow=("git status *", "bash *")), CODES["some"]),
])  # fmt: skip
def test_a_denial_has_a_code_and_all_is_denied_that_is_not_allowed(guard: Shell, cases: list[dict[str, Any]]) -> None:
    for case in cases:
        arguments = {name: value for name, value in case.items() if name != "code"}
        assert code(guard, **arguments) == case["code"], case


@table("command", HONEST["plain"])
def test_what_a_coding_agent_runs_can_be_allowed(command: str) -> None:
    allow = tuple({f"{each.words[0]} *" for each in read(command).commands})
    assert judged(Shell(allow=allow), command) is None
    assert judged(Shell(allow=allow, deny=SHIPPED.deny), command) is None


def test_a_question_is_answered_by_the_approver_and_without_one_the_command_does_not_run() -> None:
    ran: list[str] = []
    policy = Policy([Shell(ask=("git push --force",), deny=("sudo",))], tools=[BASH])

    def run(tool: str, arguments: Any) -> str:
        ran.append(arguments["command"])
        return "done"

    with policy.session("nobody") as session:
        said = session.call("bash", {"command": "git push -f"}, run)
        assert (said.status, said.code) == ("denied", "approve.pending")
        assert "`git push -f` cannot be undone (rule `git push --force`)" in str(said.message)
    with policy.session("yes", approver=lambda call: True) as session:
        assert session.call("bash", {"command": "cd x && git push -f"}, run).ok
        assert session.call("bash", {"command": "sudo git push -f"}, run).code == "shell.deny"
    with policy.session("no", approver=lambda call: False) as session:
        assert session.call("bash", {"command": "git push -f"}, run).code == "approve.refused"
    assert ran == ["cd x && git push -f"]


@table(("guard", "command", "told"), [
    (Shell(allow=("git {status,log} *", "ls *")), "git push", "These are allowed: `git {status,log} *`."),
    (Shell(allow=("git {status,log} *", "ls *")), "id", "These are allowed: `git {status,log} *`, `ls *`."),
    (Shell(allow=("ls *",)), "ls > x", "Write each command out on one line, with `&&`, `||`, `|` or `;` between them; text with other signs goes between single quotes; read and write files with a tool for files."),
    (
        Shell(deny=("git push --force",)), "cd x && timeout 5 sh -c 'git push -v --force origin'",
        "`git push -v --force origin` is not to be run here (rule `git push --force`).",
    ),
])  # fmt: skip
def test_a_refusal_names_the_command_and_its_rule_or_what_to_write_instead(guard: Any, command: str, told: str) -> None:
    said = judged(guard, command)
    assert said is not None
    assert told in (said.message, said.hint)


def test_what_cannot_be_decided_may_be_let_pass() -> None:
    lenient = Shell(deny=("rm -r * /",), undecidable="allow")
    assert code(lenient, "$TOOL --version") is None
    assert code(lenient, "$TOOL --version; rm -rf /") == "shell.deny"
    assert code(lenient, "$SUDO rm -rf /") == "shell.deny"


def test_an_argument_is_a_command_only_where_its_tool_says_so() -> None:
    editor = Tool(name="edit")
    policy = Policy([SHIPPED], tools=[BASH, editor])
    assert [one.guards for one in policy.coverage([BASH, editor])] == [("shell",), ()]
    with policy.session("s") as session:
        assert session.call("edit", {"command": "rm -rf /"}, lambda *_: "done").ok
        assert session.call("bash", {"command": "rm -rf /"}, lambda *_: "done").code == "shell.deny"
        assert session.call("bash", "ls; sudo id", lambda *_: "done").code == "shell.deny"
    with Policy([Shell(deny=("id",), mode="observe")], tools=[BASH]).session("s") as session:
        assert [said.code for said in session.decide("bash", {"command": "id"}).observed] == ["shell.deny"]


def test_a_rule_of_a_tool_declares_commands_and_replaces_settings() -> None:
    declared = {"commands": ("steps.run", "argv")}
    rules = [Rule(match="run_*", declared=declared, guards={"shell": {"allow": ("ls *",)}})]
    with Policy([SHIPPED], rules=rules).session("s") as session:
        steps = {"steps": [{"run": "ls"}, {"run": "id"}]}
        assert session.call("run_steps", steps, lambda *_: "done").code == "shell.allow"
        assert session.call("run_words", {"argv": ["ls", "-l"]}, lambda *_: "done").ok


def test_without_the_parser_a_policy_with_it_is_refused_when_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingExtra("no parser")

    monkeypatch.setattr(syntax, "parsers", missing)
    with pytest.raises(PolicyError, match="shell: no parser"):
        Policy([SHIPPED])
    assert Policy([Shell(mode="off")]).chain


@table("rule", ["", "'open", "ls |", "| sh"])
def test_a_rule_that_is_no_command_is_a_mistake_of_the_policy(rule: str) -> None:
    with pytest.raises(PolicyError, match=r"shell\.deny"):
        Policy([Shell(deny=(rule,))])
