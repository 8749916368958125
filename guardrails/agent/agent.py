"""
One conversation of an agent, started or taken up again, and run until the model answers.
"""

import hashlib
import os

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.core.values.logs import log
from guardrails.integrations.openai import run
from guardrails.integrations.openai.loop import LoopResult
from guardrails.integrations.openai.wires import WIRES
from guardrails.offline.figures import plural
from guardrails.otel import of_process
from guardrails.policy.policy import Policy
from guardrails.policy.tools import Registry
from guardrails.session.session import Session
from guardrails.session.steps import current_session

from .builtin import Root, Shell, Spawn, Web, builtin_tools
from .conversations import Conversation, Conversations, Repaired
from .settings import AgentError, Settings, load_tools, together
from .view import View, status_line


if TYPE_CHECKING:
    from openai import OpenAI


INSTRUCTIONS: Final = (
    "You are an agent. Work on the user's task with your tools, step by step, until it is done; then answer in plain text, "
    "without a tool call. A call that was refused or failed gives a JSON object with a `status`: do what its hint says; do not "
    "repeat it unchanged. A last line that begins with `[guardrails]` says more of a result. Your workspace is the folder {workspace}."
)
GO_ON: Final = "Go on with the task: its limits were raised."


class Prepared(NamedTuple):
    """
    The parts that are needed before a conversation is touched, so that no mistake leaves one behind.
    """

    settings: Settings
    policy: Policy
    tools: Registry
    """A person's own."""


def prepare(settings: Settings) -> Prepared:
    """
    Load the policy and the tools. Raises PolicyError or AgentError with all that is wrong.
    """
    if not Path(settings.workspace).is_dir():
        raise AgentError(f"cannot work in `{settings.workspace}`: it is no folder")
    policy = Policy.load(settings.policy, envelope="quiet")
    if policy.files is not None and policy.files.within(settings.workspace):
        # The agent could write it: what it is held to is what was there when it began.
        policy.files = None
    return Prepared(settings, policy, together(map(load_tools, settings.tools)))


class Agent:
    """
    The conversation *chat* with its session, tools and view; made by `started`, or of one that was resumed.
    """

    def __init__(
        self, chats: Conversations, chat: Conversation, prepared: Prepared, view: View, client: "OpenAI", records: str
    ) -> None:
        self.settings, policy, tools = prepared
        self.chat, self.view, self._client = chat, view, client
        self.repaired: list[Repaired] = []
        self._over = False
        self._telemetry = of_process()
        self.session = policy.session(
            chat.id,
            store=chats.store,
            records=records,
            on_decision=view.decided,
            scopes=self.settings.scope_ids(),
            approver=view.approves,
            telemetry=self._telemetry,
        )
        self._shell = None
        if self.settings.builtins:
            if "exec_shell" not in tools.entries:
                root, settings = Root(self.settings.workspace), self.settings
                self._shell = Shell(root, sandbox=settings.sandbox, network=settings.network)
            tools = together((self._builtin(chats), tools))
        self._tools = tools
        view.status = self.status
        chat.watch = view.message

    def _builtin(self, chats: Conversations) -> Registry:
        settings = self.settings
        # The notes about each workspace by itself, beside the conversations.
        workspace = hashlib.sha256(settings.workspace.encode(errors="surrogateescape")).hexdigest()[:12]
        return builtin_tools(
            settings.workspace,
            memory=Path(chats.path).with_suffix(f".memory-{workspace}.db"),
            shell=self._shell or False,
            web=Web(allow=settings.allow_hosts, search=settings.search),
            spawn=Spawn(lambda: cast("Session", current_session()), self._sub_agent),
            message=lambda text: self.view.say(f"   message: {text}"),
        )

    def begin(self) -> None:
        """
        Say what is run, with what, and what of it cannot be had.
        """
        settings, commands = self.settings, ""
        if self._shell is not None:
            try:
                commands = f", commands in {self._shell.sandbox or 'no sandbox'}"
            except SandboxUnavailable as error:
                commands, hint = ", no commands", "see `guardrails doctor` and `--sandbox none`"
                self.view.say(f"   note: exec_shell is refused, {error.code}: {error}; {hint}")
        if Path(settings.policy).is_relative_to(settings.workspace):
            self.view.say("   note: the policy lies in the workspace: the agent can change it for the next `--resume`")
        tools = plural(len(self._tools.entries), "tool")
        self.view.say(f"conversation {self.chat.id}: {settings.model}, policy {settings.policy}, {tools}{commands}")

    def status(self) -> str:
        """
        Returns the used part of the budget, and the part that is left.
        """
        ledger = self.session.ledger
        return status_line(ledger.progress, ledger.cost_usd, ledger.unpriced, self.view.denied)

    def extend(self, amounts: Mapping[str, Any]) -> None:
        """
        Raise the session's limits by *amounts*, or those of its scopes (`user.max_calls`); none forgives refused turns and
        blown growth caps. Logged and recorded.

        Raises SessionError for what is no limit, or one that the policy does not set.
        """
        split = {name: name.rpartition(".") for name in amounts}
        for scope in dict.fromkeys(whose for whose, _, _ in split.values()) or [""]:
            more: dict[str, Any] = {own: amounts[name] for name, (whose, _, own) in split.items() if whose == scope}
            self.session.extend(scope=scope or None, **more)
        raised = ", ".join(f"{name} by {amount}" for name, amount in amounts.items()) or "refused turns forgiven"
        log.info("limits raised", extra={"session": self.session.id, "amounts": dict(amounts)})
        self.view.say(f"limits raised: {raised}; {self.status()}")

    def take_up(self, task: str | None, *, extended: bool) -> None:
        """
        Answer what a killed process left open, and say to the model what is to be done now. If nothing is to be done,
        `run` gives the answer that there is.

        Raises AgentError if there is more to be done and the session is exhausted.
        """
        self.repaired = self.chat.repair(self.session)
        for call in self.repaired:
            self.view.say(f"   {call.tool} ({call.id}) was interrupted; it is not run again")
        last: dict[str, Any] = self.chat[-1] if self.chat else {}
        if task is None and (last.get("role") != "assistant" or any(WIRES[self.chat.wire].calls_of(last))):
            return
        if task is None and not extended:
            self._over = True
            self.view.say("it has its answer: to go on, give it another task, or raise a limit")
            return
        if task is not None:
            self.session.ledger.go_on()
        cause = self.session.exhausted
        if cause is not None:
            raise AgentError(f"the session is exhausted ({cause}): go on with `{how_to_go_on(cause)}`")
        self.chat.append({"role": "user", "content": GO_ON if task is None else task})

    def run(self) -> LoopResult:
        """
        Let the model work until it answers. Raises what the client raises; the conversation is kept.
        """
        if self._over:
            code, answer = self.session.exhausted, text_in(self.chat[-1])
            return LoopResult(answer, "forced" if code else "answered", code, None, 0, 0, self.chat, self.session)
        telemetry, around = self._telemetry, {name.lower(): value for name, value in os.environ.items()}
        with nullcontext() if telemetry is None else telemetry.running(self.session.id, around), self.session:
            return self._ask(self.session, self.chat, on_text=self.view.text)

    def _ask(self, session: Session, messages: list[Any], **more: Any) -> LoopResult:
        settings = self.settings
        more |= {"wire": self.chat.wire, "stream": settings.stream, "max_tool_iterations": settings.max_iterations}
        return run(self._client, session, model=settings.model, messages=messages, tools=self._tools, **more)

    def _sub_agent(self, task: str, session: Session) -> str:
        """
        Work on *task* within *session*, in a conversation of its own that is not kept.
        """
        return self._ask(session, opening(self.settings, task)).answer


def started(chats: Conversations, settings: Settings, task: str) -> Conversation:
    """
    A new conversation of an agent about *task*.
    """
    origin = {**asdict(settings), "task": task[:200]}
    return chats.start(wire=settings.wire, messages=opening(settings, task), settings=origin)


def opening(settings: Settings, task: str) -> list[dict[str, Any]]:
    """
    The first messages of a conversation about *task*.
    """
    instructions = {"role": "system", "content": INSTRUCTIONS.format(workspace=settings.workspace)}
    return [instructions, {"role": "user", "content": task}]


def text_in(message: Mapping[str, Any]) -> str:
    """
    The text of a message of either wire.
    """
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(str(part.get("text") or "") for part in parts)


def how_to_go_on(cause: str | None) -> str:
    """
    The option, or the task, that lets a conversation go on which *cause* has ended.
    """
    *scope, guard, name = f"..{cause or ''}".split(".")[-3:]
    if guard == "loop":
        return '"go on"'
    if guard != "budget" or (name == "unpriced" and not any(scope)):
        return "--forgive"
    # Of a scope only a limit can be raised, which forgives it too.
    limit, amount = ("max_cost_usd", "0") if name == "unpriced" else (name, "AMOUNT")
    return f"--extend {'.'.join([*filter(None, scope), limit])}={amount}"
