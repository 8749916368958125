"""
Whether the user is asked about arguments that do not fit follows from how often such calls were corrected.
"""

from pathlib import Path
from typing import Any

from guardrails import Envelope, Policy, Retryable, Tool, Validation
from guardrails.core.values.types import INVALID
from tests.core.retries.conftest import constant
from tests.tables import table


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["city"],
}
MISSING: dict[str, Any] = {"nights": 2}
WRONG = {"city": "Nara", "nights": "two"}


def refused(
    tmp_path: Path, arguments: dict[str, Any], share: float | None, *, seen: float = 40, ask_user: tuple[str, ...] = ()
) -> Envelope:
    model = tmp_path / "model.json"
    counts = {} if share is None else {tool: {INVALID: [seen, seen * share]} for tool in ("", "book")}
    model.write_bytes(constant(0.0, corrections=counts))
    tool = Tool(name="book", parameters=SCHEMA, ask_user=ask_user)
    made: Envelope = (
        Policy([Validation(), Retryable(model=str(model))], tools=[tool])
        .session("s")
        .call("book", arguments, lambda *_: "ok")
    )
    assert made.status == "validation_error"
    return made


def test_a11_what_is_corrected_four_times_in_five_is_fixed_without_the_user(tmp_path: Path) -> None:
    made = refused(tmp_path, MISSING, 0.8)
    assert made.next_action == "fix_arguments"
    assert made.user_facing_hint == (
        "Take what is missing from the conversation and call again: refused calls of `book` are corrected 4 times in 5. "
        "Ask the user only if it is not there; do not guess."
    )


def test_a11_what_is_corrected_one_time_in_ten_asks_the_user(tmp_path: Path) -> None:
    made = refused(tmp_path, WRONG, 0.1)
    assert made.next_action == "ask_user"
    assert (
        made.user_facing_hint == "Ask the user before the next try: refused calls of `book` are corrected 1 time in 10."
    )
    assert "ask the user" in str(made.next_action_hint)


@table(
    ("arguments", "share", "action"),
    [
        (MISSING, 0.1, "ask_user"),
        (MISSING, 0.4, "ask_user"),
        (WRONG, 0.4, "fix_arguments"),
        (WRONG, 0.9, "fix_arguments"),
    ],
)
def test_between_them_the_usual_advice_stays(
    tmp_path: Path, arguments: dict[str, Any], share: float, action: str
) -> None:
    made, usual = refused(tmp_path, arguments, share), refused(tmp_path, arguments, None)
    assert made.next_action == action
    assert made.to_json() == usual.to_json()


def test_what_only_the_user_can_know_is_asked_for_whatever_is_learned(tmp_path: Path) -> None:
    assert refused(tmp_path, MISSING, 0.99, ask_user=("city",)).next_action == "ask_user"


def test_too_few_refused_calls_say_nothing(tmp_path: Path) -> None:
    assert refused(tmp_path, MISSING, 1.0, seen=4).to_json() == refused(tmp_path, MISSING, None).to_json()
