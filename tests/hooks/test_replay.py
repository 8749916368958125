"""
A session of a client, driven again through the hook, is decided as `replay` decides its transcript.
"""

import json
import random

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from guardrails import Policy
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report, open_calls
from tests.hooks.driven import Claude, Codex, Gemini, refused


POLICIES: Final = {
    "default": "version: 1\nextends: default\n",
    "always": "version: 1\nextends: default\nduplicates: {rule: always, window: 5}\nbudget: {max_calls: 15}\n",
    "tokens": "version: 1\nbudget: {max_tokens: 700}\n",
}
COMMANDS: Final = ("make test", "cat a.py", "ls", "git status", "grep -rn x .")


class World:
    """
    A project in which commands show what was edited, and a model that *choice* stands for.
    """

    def __init__(self, seed: int) -> None:
        self.choice = random.Random(seed)
        self.edits = 0

    def turns(self) -> Any:
        """
        Turns of (tool, arguments, result), the first known to what comes before.
        """
        for _ in range(12):
            yield [self._call() for _ in range(self.choice.choice((1, 1, 2)))]

    def _call(self) -> tuple[str, str, str]:
        if self.choice.random() < 0.15:
            self.edits += 1
            return "edit", f"line {self.choice.randrange(3)}", f"changed {self.edits}"
        command = self.choice.choice(COMMANDS[: self.choice.choice((2, 5))])
        shows = self.edits if command in ("make test", "cat a.py") else 0
        return "shell", command, f"{command} shows {shows}"


class Clock:
    """
    Seconds that pass if told.
    """

    def __init__(self) -> None:
        self.seconds = 1_800_000_000.0

    def __call__(self) -> float:
        self.seconds += 0.001
        return self.seconds


def at(driven: Any) -> str:
    """
    The time as a transcript has it.
    """
    return datetime.fromtimestamp(driven.clock.seconds, UTC).isoformat()


def claude(driven: Any, world: World) -> list[bool]:
    said = []
    for number, turn in enumerate(world.turns()):
        driven.clock.seconds += 2
        calls = [(f"toolu_{number}_{place}", *call) for place, call in enumerate(turn)]
        blocks = [{"type": "tool_use", "id": key, **_claude(kind, what, key)} for key, kind, what, _ in calls]
        usage = {"input_tokens": 90, "output_tokens": 10}
        message = {"id": f"msg_{number}", "role": "assistant", "model": "m", "usage": usage, "content": blocks}
        driven.write(
            {"type": "assistant", "sessionId": "s", "uuid": f"u{number}", "timestamp": at(driven), "message": message}
        )
        events = []
        for key, kind, what, shown in calls:
            made = _claude(kind, what, key)
            event = {"tool_name": made["name"], "tool_input": made["input"], "tool_use_id": key}
            said.append(refused(driven.tell("PreToolUse", **event)))
            gave = {"stdout": shown, "stderr": "", "interrupted": False} if kind == "shell" else {"change": shown}
            events.append((said[-1], {**event, "tool_response": gave}, shown))
        for denied, event, shown in events:
            if not denied:
                driven.tell("PostToolUse", **event)
            key = event["tool_use_id"]
            block = {"type": "tool_result", "tool_use_id": key, "content": shown}
            line = {
                "type": "user",
                "sessionId": "s",
                "uuid": f"r{key}",
                "timestamp": at(driven),
                "message": {"content": [block]},
            }
            driven.write(line)
    return said


def _claude(kind: str, what: str, key: str) -> dict[str, Any]:
    if kind == "edit":
        return {"name": "Edit", "input": {"file_path": "a.py", "new_string": what}}
    return {"name": "Bash", "input": {"command": what, "description": f"For {key}"}}


def codex(driven: Any, world: World) -> list[bool]:
    said = []
    driven.write({"type": "session_meta", "timestamp": at(driven), "payload": {"id": "s", "source": "cli"}})
    for number, turn in enumerate(world.turns()):
        driven.clock.seconds += 2
        ends = []
        for place, (kind, what, shown) in enumerate(turn):
            key = f"call_{number}_{place}"
            item: dict[str, Any] = {"type": "function_call", "name": "exec_command", "call_id": key}
            item["arguments"] = json.dumps({"cmd": what})
            if kind == "edit":
                item = {"type": "custom_tool_call", "name": "apply_patch", "call_id": key, "input": what}
            driven.write({"type": "response_item", "timestamp": at(driven), "payload": item})
            began = driven.clock.seconds
            name = "Bash" if kind == "shell" else "apply_patch"
            event = {"tool_name": name, "tool_input": {"command": what}, "tool_use_id": key}
            said.append(refused(driven.tell("PreToolUse", **event)))
            ends.append(
                (said[-1], {**event, "tool_response": shown}, {"type": f"{item['type']}_output", "call_id": key}, began)
            )
        for denied, event, ended, began in ends:
            if not denied:
                driven.tell("PostToolUse", **event)
            shown = event["tool_response"]
            head = f"Chunk ID: {world.choice.randrange(1 << 20):x}\nWall time: {driven.clock.seconds - began:.4f} seconds\n"
            rest = f"Process exited with code 0\nOriginal token count: 3\nOutput:\n{shown}"
            output = head + rest if event["tool_name"] == "Bash" else shown
            driven.write({"type": "response_item", "timestamp": at(driven), "payload": {**ended, "output": output}})
        last = {"input_tokens": 90, "output_tokens": 10}
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": 100 * number + 100}}
        driven.write({"type": "event_msg", "timestamp": at(driven), "payload": {"type": "token_count", "info": info}})
    return said


def gemini(driven: Any, world: World) -> list[bool]:
    said = []
    driven.write({"sessionId": "s", "projectHash": "h", "startTime": at(driven)})
    for number, turn in enumerate(world.turns()):
        driven.clock.seconds += 2
        tokens = {"input": 90, "output": 10, "total": 100}
        message: dict[str, Any] = {
            "id": f"m{number}",
            "type": "gemini",
            "model": "m",
            "timestamp": at(driven),
            "tokens": tokens,
        }
        driven.write(message)
        driven.answered()
        calls = []
        for place, (kind, what, shown) in enumerate(turn):
            tool, given = "run_shell_command", {"command": what, "description": f"For {number}.{place}"}
            if kind == "edit":
                tool, given = "replace", {"file_path": "a.py", "new_string": what, "instruction": f"Change {number}"}
            text = f"Output: {shown}\nProcess Group PGID: {4000 + number}" if kind == "shell" else shown
            said.append(refused(driven.before(tool, given)))
            calls.append(
                (said[-1], text, {"id": f"c{number}_{place}", "name": tool, "args": given, "status": "success"})
            )
        written = []
        for denied, text, call in calls:
            if not denied:
                driven.after(text, tool_name=call["name"], tool_input=call["args"])
            response = {"functionResponse": {"response": {"output": text}}}
            written.append({**call, "timestamp": at(driven), "result": [response]})
        driven.write({**message, "toolCalls": written})
    return said


def both(driven: Any, drive: Any, seed: int) -> tuple[list[bool], list[bool]]:
    """
    What of a session was refused behind the hook, and what `replay` says of its transcript.
    """
    driven.clock = Clock()
    said = drive(driven, World(seed))
    report = Report()
    judge = Judge(Policy.load(driven.options.policy))
    judged = [each.decision == "deny" for each in judge.judge([*open_calls(driven.transcript, report)])]
    assert len(report.broken) == 0
    return said, judged


CLIENTS: Final = {Claude: claude, Codex: codex, Gemini: gemini}


@pytest.mark.parametrize("policy", ["default", "always"])
@pytest.mark.parametrize(("client", "drive"), CLIENTS.items())
def test_replay_decides_a_transcript_as_the_hook_did(client: Any, drive: Any, policy: str, tmp_path: Path) -> None:
    stopped = 0
    for seed in range(8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        said, judged = both(client(folder, POLICIES[policy]), drive, seed)
        assert judged == said, seed
        stopped += sum(said)
    assert stopped, "something is decided at all"


@pytest.mark.parametrize(("client", "drive"), CLIENTS.items())
def test_a_limit_of_tokens_is_seen_at_most_one_response_later(client: Any, drive: Any, tmp_path: Path) -> None:
    # A client writes down what a response used once it is over, and most make its calls before.
    said, judged = both(client(tmp_path, POLICIES["tokens"]), drive, 0)
    assert 0 <= said.index(True) - judged.index(True) <= 2
    assert all(said[said.index(True) :])
    assert all(judged[judged.index(True) :])
