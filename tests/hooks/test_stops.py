"""
When a run is stopped at a limit: not before the model has answered the reason.
"""

import json

from pathlib import Path
from typing import Any

import pytest

from guardrails import Budget, Policy
from guardrails.hooks.events import answer
from guardrails.hooks.options import Options
from tests.hooks.driven import Claude, Codex, Gemini


def told(n: int, transcript: Path, **said: Any) -> dict[str, Any]:
    own = {"session_id": "s", "transcript_path": str(transcript), "cwd": ""}
    call = {"tool_name": "Bash", "tool_input": {"command": f"ls {n}"}, "tool_use_id": f"toolu_{n}"}
    return {"hook_event_name": "PreToolUse", **own, **call, **said}


def response(message: str, *calls: int) -> str:
    """
    Lines of a transcript: what the model has said, a line a block.
    """
    blocks = [{"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": f"ls {n}"}} for n in calls]
    own = {"id": message, "role": "assistant", "model": "claude-opus-5-5", "usage": {"input_tokens": 9}}
    lines = [json.dumps({"type": "assistant", "message": {**own, "content": [block]}}) for block in blocks]
    return "".join(f"{line}\n" for line in lines)


def result(n: int, text: str) -> str:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": text}
    return json.dumps({"type": "user", "message": {"role": "user", "content": [block]}}) + "\n"


def test_calls_of_one_response_that_are_refused_one_after_the_other_stop_nothing(tmp_path: Path, clock: Any) -> None:
    transcript = tmp_path / "session.jsonl"
    session = Policy([Budget(max_calls=1)]).session("s", clock=clock)
    transcript.write_text(response("msg_1", 1, 2, 3, 4, 5))
    said = []
    for n in range(1, 6):
        said.append(answer(session, told(n, transcript)))
        if n == 1:
            answer(session, told(n, transcript, hook_event_name="PostToolUse", tool_response="a"))
        with transcript.open("a") as file:
            file.write(result(n, json.dumps(said[-1]) if said[-1] else "a"))
        clock.advance(0.2)
    assert said[0] == {}
    assert all("budget.max_calls" in json.dumps(one) for one in said[1:])
    assert not any("continue" in one for one in said)


def test_a_model_that_goes_on_after_it_has_read_why_is_stopped(tmp_path: Path, clock: Any) -> None:
    transcript = tmp_path / "session.jsonl"
    session = Policy([Budget(max_calls=1)]).session("s", clock=clock)
    stopped = []
    for n in range(1, 6):
        with transcript.open("a") as file:
            file.write(response(f"msg_{n}", n))
        said = answer(session, told(n, transcript))
        if n == 1:
            answer(session, told(n, transcript, hook_event_name="PostToolUse", tool_response="a"))
        with transcript.open("a") as file:
            file.write(result(n, json.dumps(said) if said else "a"))
        stopped.append("continue" in said)
        clock.advance(5)
    # The second call reads the reason, the third is made nevertheless, and that response is over with the fourth.
    assert stopped == [False, False, False, True, True]


@pytest.mark.parametrize("driven", [Claude, Codex, Gemini])
@pytest.mark.parametrize("more", ["budget: {max_calls: 4}", "budget: {}", ""])
def test_a_limit_that_the_policy_raises_lets_the_session_go_on_with_the_next_message(
    tmp_path: Path, driven: Any, more: str
) -> None:
    prompt = "BeforeAgent" if driven is Gemini else "UserPromptSubmit"
    made = driven(tmp_path, "version: 1\nbudget: {max_calls: 2}\n")
    assert [made.ran(arguments={"command": f"make {n}"}) for n in range(3)] == [True, True, False]
    made.tell(prompt)
    assert not made.ran(arguments={"command": "make 3"})
    raised = tmp_path / "raised.yaml"
    raised.write_text(f"version: 1\n{more}\n")
    made.options = Options(policy=str(raised), store=made.options.store)
    made.tell(prompt)
    assert [made.ran(arguments={"command": f"make {n}"}) for n in range(4, 7)] == [True, True, "4" not in more]
