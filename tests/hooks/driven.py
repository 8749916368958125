"""
A client that tells its events to `respond`, and keeps a transcript as it does.
"""

import json
import tempfile
import time

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from guardrails import Policy, SqliteStore
from guardrails.hooks.options import Options
from guardrails.hooks.respond import respond


ROOT = Path(__file__).parents[2]
POLICY = "version: 1\nextends: default\n"


class Driven:
    """
    Sessions in a folder of their own below *folder*, behind the policy that *text* says.
    """

    def __init__(self, folder: Path, text: str = POLICY, **options: Any) -> None:
        self.folder = folder = Path(tempfile.mkdtemp(dir=folder))
        self.transcript, self.policy = folder / "transcript.jsonl", folder / "policy.yaml"
        self.policy.write_text(text)
        store, records = str(folder / "hooks.db"), str(folder / "records.jsonl")
        self.options = Options(policy=str(self.policy), store=store, records=records, **options)
        self.calls = 0
        self.project = ""
        self.clock: Callable[[], float] = time.time

    def before(self, tool: str = "", arguments: Any = None) -> Any:
        """
        The answer before a call.
        """
        raise NotImplementedError

    def after(self, response: Any = None, **said: Any) -> Any:
        """
        The answer after it.
        """
        raise NotImplementedError

    def tell(self, name: str, **said: Any) -> Any:
        """
        The answer to the event *name*.
        """
        event = {"hook_event_name": name, "session_id": "s", "cwd": str(self.folder), **said}
        event.setdefault("transcript_path", str(self.transcript) if self.transcript.exists() else "")
        answer = respond(json.dumps(event).encode(), self.options, project=self.project, clock=self.clock)
        made = json.loads(answer)
        assert isinstance(made, dict)
        return made

    def write(self, line: Any) -> None:
        """
        Add a *line* to the transcript.
        """
        with self.transcript.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def now(self) -> str:
        return datetime.fromtimestamp(self.clock(), UTC).isoformat()

    def rules(self, text: str) -> None:
        """
        Another policy from now on.
        """
        self.policy.write_text(f"version: 1\n{text}\n")

    def option(self, word: str) -> None:
        """
        The command of the hook has another *word*.
        """
        self.options = Options.of([*self.options.words(), word])

    def within(self, project: str, *folders: str) -> None:
        """
        The session began in the folder *project*; there are others.
        """
        for folder in (project, *folders):
            (self.folder / folder).mkdir()
        self.project = str(self.folder / project)

    def tokens(self) -> int:
        """
        The tokens that were charged.
        """
        session = Policy.load(self.options.policy).session("s", store=SqliteStore(self.options.store or ""))
        found: int = session.ledger.read(lambda state, _: state.tokens)
        return found

    def records(self) -> list[dict[str, Any]]:
        """
        What was recorded.
        """
        path = Path(self.options.records or "")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Claude(Driven):
    """
    As Claude Code tells it.
    """

    def before(self, tool: str = "Bash", arguments: Any = None, **said: Any) -> Any:
        self.calls += 1
        given = {"command": "make"} if arguments is None else arguments
        self.last = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{self.calls}", **said}
        return self.tell("PreToolUse", **self.last)

    def after(self, response: Any = None, **said: Any) -> Any:
        shown = {"stdout": "1 failed", "stderr": "", "interrupted": False} if response is None else response
        return self.tell("PostToolUse", **{**self.last, **said, "tool_response": shown})

    def ran(self, tool: str = "Bash", arguments: Any = None, response: Any = None, **said: Any) -> bool:
        """
        Whether a call is let through; then it runs.
        """
        if refused(self.before(tool, arguments, **said)):
            return False
        self.after(response)
        return True

    def said(self, key: str, usage: Any, *calls: str, inputs: Sequence[tuple[str, Any]] = ()) -> None:
        """
        Write a response of the model.
        """
        given = zip(calls, inputs or [("Bash", {})] * len(calls), strict=True)
        blocks = [{"type": "tool_use", "id": call, "name": tool, "input": made} for call, (tool, made) in given]
        message = {"id": key, "role": "assistant", "model": "m", "usage": usage, "content": blocks}
        self.write({"type": "assistant", "sessionId": "s", "timestamp": self.now(), "message": message})

    def result(self, call: str, text: str = "x", *, failed: bool = True) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed}
        self.write({"type": "user", "sessionId": "s", "timestamp": self.now(), "message": {"content": [block]}})


class Codex(Claude):
    """
    As Codex CLI does.
    """

    def tell(self, name: str, **said: Any) -> Any:
        return super().tell(name, turn_id="t", model="gpt-5", permission_mode="default", **said)

    def after(self, response: Any = "done\n", **said: Any) -> Any:
        return super().after("1 failed\n" if response is None else response, **said)

    def count(self, total: int) -> None:
        """
        Write the tokens that responses used.
        """
        last = {"input_tokens": 90, "cached_input_tokens": 4, "output_tokens": 10, "reasoning_output_tokens": 2}
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
        self.write({"timestamp": self.now(), "type": "event_msg", "payload": {"type": "token_count", "info": info}})


class Gemini(Driven):
    """
    As Gemini CLI does.
    """

    def tell(self, name: str, **said: Any) -> Any:
        return super().tell(name, timestamp=self.now(), **said)

    def before(self, tool: str = "run_shell_command", arguments: Any = None) -> Any:
        self.calls += 1
        given = {"command": "make", "description": f"try {self.calls}"} if arguments is None else arguments
        self.last = {"tool_name": tool, "tool_input": given}
        return self.tell("BeforeTool", **self.last)

    def after(self, response: Any = None, **said: Any) -> Any:
        text = f"<untrusted_context>\nOutput: 1 failed\nProcess Group PGID: {4000 + self.calls}\n</untrusted_context>"
        shown = text if response is None else response
        given = {"llmContent": shown, "returnDisplay": "done"}
        return self.tell("AfterTool", **{**self.last, **said, "tool_response": given})

    def answered(self, total: int = 100, *, over: bool = True) -> Any:
        """
        A response of the model that used *total* tokens; a piece of it if it is not *over*.
        """
        usage = {"promptTokenCount": total - 10, "candidatesTokenCount": 10, "totalTokenCount": total}
        candidate = {"content": {"role": "model", "parts": []}, **({"finishReason": "STOP"} if over else {})}
        response = {"candidates": [candidate], "usageMetadata": usage}
        return self.tell("AfterModel", llm_request={"model": "gemini-2.5-flash"}, llm_response=response)

    def ran(self, tool: str = "run_shell_command", arguments: Any = None, response: Any = None) -> bool:
        if refused(self.before(tool, arguments)):
            return False
        self.after(response)
        return True


def refused(answer: Any) -> bool:
    """
    Whether *answer* refuses a call, in the form of any client.
    """
    specific = answer.get("hookSpecificOutput", {})
    return bool(specific.get("permissionDecision") == "deny" or answer.get("decision") == "deny")


def reason(answer: Any) -> dict[str, Any]:
    """
    What is said about a refusal.
    """
    specific = answer.get("hookSpecificOutput", {})
    text = specific.get("permissionDecisionReason") or answer.get("reason")
    found = json.loads(text.partition("\n")[2])
    assert isinstance(found, dict)
    return found
