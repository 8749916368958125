"""
A session of a client, driven again through the hook, is decided as `replay` decides its transcript.
"""

import itertools
import random

from collections.abc import Iterator
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


def turns(seed: int) -> Iterator[list[tuple[str, dict[str, str], Any]]]:
    """
    Turns of (tool, arguments, result) in a project whose commands show what was edited.
    """
    choice, edits = random.Random(seed), 0
    for _ in range(12):
        made: list[tuple[str, dict[str, str], Any]] = []
        for _ in range(choice.choice((1, 1, 2))):
            if choice.random() < 0.15:
                edits += 1
                edit = {"file_path": "a.py", "new_string": f"{choice.randrange(3)}"}
                made.append(("Edit", edit, {"change": f"changed {edits}"}))
                continue
            command = choice.choice(COMMANDS[: choice.choice((2, 5))])
            shown = f"{command} shows {edits if command in COMMANDS[:2] else 0}"
            arguments = {"command": command, "description": f"Try {choice.random()}"}
            made.append(("Bash", arguments, {"stdout": shown, "stderr": "", "interrupted": False}))
        yield made


def driven(session: Claude, seed: int) -> list[bool]:
    """
    Whether each call was refused, in a session whose transcript is written as it goes.
    """
    seconds, answers, ticks = 1_800_000_000.0, [], itertools.count()
    session.clock = lambda: seconds + next(ticks) / 1000

    def write(kind: str, key: str, **message: Any) -> None:
        at = datetime.fromtimestamp(session.clock(), UTC).isoformat()
        session.write({"type": kind, "sessionId": "s", "uuid": key, "timestamp": at, "message": message})

    for number, turn in enumerate(turns(seed)):
        seconds += 2
        named = [(tool, arguments, f"toolu_{number}_{n}") for n, (tool, arguments, _) in enumerate(turn)]
        events = [dict(zip(("tool_name", "tool_input", "tool_use_id"), each, strict=True)) for each in named]
        calls = [dict(zip(("name", "input", "id"), each.values(), strict=True), type="tool_use") for each in events]
        usage = {"input_tokens": 90, "output_tokens": 10}
        write("assistant", f"u{number}", id=f"msg_{number}", role="assistant", model="m", usage=usage, content=calls)
        denied = [refused(session.tell("PreToolUse", **event)) for event in events]
        for event, (_, _, response), refusal in zip(events, turn, denied, strict=True):
            if not refusal:
                session.tell("PostToolUse", **event, tool_response=response)
            key, text = event["tool_use_id"], response.get("stdout") or response["change"]
            block = {"type": "tool_result", "tool_use_id": key, "content": text}
            write("user", f"r{key}", content=[block])
        answers += denied
    return answers


@table("policy", POLICIES)
def test_replay_decides_a_transcript_as_the_hook_did(policy: str, tmp_path: Path) -> None:
    stopped = 0
    for seed in range(8):
        session, report = Claude(tmp_path, policy), Report()
        denied = driven(session, seed)
        judged = Judge(Policy.load(session.options.policy)).judge([*open_calls(session.transcript, report)])
        assert [each.decision == "deny" for each in judged] == denied, seed
        assert not report.broken
        stopped += sum(denied)
    assert stopped, "something is decided at all"
