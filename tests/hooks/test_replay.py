"""
A session of a client, driven again through the hook, is decided as `replay` decides its transcript.
"""

import random

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guardrails import Policy
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report, open_calls
from tests.hooks.driven import Claude, refused
from tests.tables import table


POLICIES: Final = (
    "version: 1\nextends: default\n",
    "version: 1\nextends: default\nduplicates: {rule: always, window: 5}\nbudget: {max_calls: 15}\n",
)
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


@table("policy", POLICIES)
def test_replay_decides_a_transcript_as_the_hook_did(policy: str, tmp_path: Path) -> None:
    stopped = 0
    for seed in range(8):
        folder = tmp_path / f"{len(policy)}-{seed}"
        folder.mkdir()
        driven = Claude(folder, policy)
        driven.clock = Clock()
        said, report = claude(driven, World(seed)), Report()
        judged = Judge(Policy.load(driven.options.policy)).judge([*open_calls(driven.transcript, report)])
        assert [each.decision == "deny" for each in judged] == said, seed
        assert not report.broken
        stopped += sum(said)
    assert stopped, "something is decided at all"
