"""
When a run is stopped at a limit: not before the model has answered the reason.
"""

from pathlib import Path
from typing import Any

import pytest

from guardrails.hooks.options import Options
from tests.hooks.driven import Claude, Codex, Gemini, refused


USAGE = {"input_tokens": 9}
CAP = "version: 1\nbudget: {max_calls: 1}\n"


def test_calls_of_one_response_that_are_refused_one_after_the_other_stop_nothing(tmp_path: Path) -> None:
    driven = Claude(tmp_path, CAP)
    driven.said("msg_1", USAGE, *(f"toolu_{n}" for n in range(1, 6)))
    for n in range(1, 6):
        said = driven.before(arguments={"command": f"ls {n}"})
        assert refused(said) == (n > 1)
        assert "continue" not in said
        if n == 1:
            driven.after()
        driven.result(f"toolu_{n}")


def test_a_model_that_goes_on_after_it_has_read_why_is_stopped(tmp_path: Path) -> None:
    driven = Claude(tmp_path, CAP)
    stopped = []
    for n in range(1, 5):
        driven.said(f"msg_{n}", USAGE, f"toolu_{n}")
        said = driven.before(arguments={"command": f"ls {n}"})
        if n == 1:
            driven.after()
        driven.result(f"toolu_{n}")
        stopped.append("continue" in said)
    # The second call reads the reason, the third is made nevertheless.
    assert stopped == [False, False, True, True]


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
