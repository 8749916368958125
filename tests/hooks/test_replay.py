"""
A session of a client, driven again through the hook, is decided as `replay` decides its transcript.
"""

import itertools
import random

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from guardrails import Policy
from guardrails.offline.replay.judge import Judge
from guardrails.offline.transcripts import Report, open_calls
from tests.hooks.driven import POLICY, Claude, refused
from tests.tables import table


STRICT: Final = f"{POLICY}duplicates: {{rule: always, window: 5}}\nbudget: {{max_calls: 15}}\n"
COMMANDS: Final = ("make test", "cat a.py", "ls", "git status", "grep -rn x .")


def turns(seed: int) -> Iterator[list[tuple[str, dict[str, str], str]]]:
    """
    Turns of (tool, arguments, result) in a project whose commands show what was edited.
    """
    choice, edits = random.Random(seed), 0
    for _ in range(12):
        made = []
        for _ in range(choice.choice((1, 1, 2))):
            command = choice.choice(COMMANDS[: choice.choice((2, 5))])
            shown = f"{command} shows {edits if command in COMMANDS[:2] else 0}"
            call = ("Bash", {"command": command, "description": f"Try {choice.random()}"}, shown)
            if choice.random() < 0.15:
                edits += 1
                edit = {"file_path": "a.py", "new_string": f"{choice.randrange(3)}"}
                call = ("Edit", edit, f"changed {edits}")
            made.append(call)
        yield made


def driven(session: Claude, seed: int) -> list[bool]:
    """
    Whether each call was refused, in a session whose transcript is written as it goes.
    """
    ticks, answers = itertools.count(1_800_000_000_000, 100), list[bool]()
    session.clock = lambda: next(ticks) / 1000
    for number, turn in enumerate(turns(seed)):
        inputs, ids = [call[:2] for call in turn], [f"toolu_{session.calls + n}" for n in range(1, len(turn) + 1)]
        session.said(f"msg_{number}", {"input_tokens": 90, "output_tokens": 10}, *ids, inputs=inputs)
        events = [(refused(session.before(*one)), session.last) for one in inputs]
        for (refusal, session.last), key, (tool, _, text) in zip(events, ids, turn, strict=True):
            response: Any = {"stdout": text, "stderr": "", "interrupted": False} if tool == "Bash" else {"change": text}
            if not refusal:
                session.after(response)
            session.result(key, text, failed=False)
        answers += [refusal for refusal, _ in events]
    return answers


@table("policy", (POLICY, STRICT))
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
