"""
Play a recorded chat through a policy: each call is decided as if it were made now, and one that may run gets its recorded result.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.text.plain_json import to_json
from guardrails.offline.replay.lacking import NEEDS
from guardrails.offline.replay.lens import without
from guardrails.offline.transcripts import RecordedCall, Report, open_calls
from guardrails.policy.policy import Policy
from guardrails.sinks import Sink
from guardrails.stores.memory import MemoryStore


NOT_JUDGED: Final = "rates, growth, elapsed time, tokens and model cost: recorded chats have no times and no usage"
TIMED: Final = frozenset((name, setting) for name, setting, need in NEEDS if need in ("times", "starts", "soon"))
"""The guards and settings that judge by time."""
STEP_S: Final = 3_600.0
"""Between two turns; longer than any wait that a policy asks for."""
LACKING: Final = "the recording has no result for this call"


@dataclass(frozen=True, slots=True)
class Played:
    """
    A recorded chat, played.
    """

    name: str
    recorded_calls: int
    calls: tuple[dict[str, Any], ...]
    """Those that were come to: `tool`, `arguments`, `decision` (`ran` or `denied`), the `code` and `reason` of a denial,
    the codes that guards in observe mode would have denied it with, what was `recorded`, and what the model would have `read`."""
    code: str | None
    """Of what exhausted the session, so that the final answer is asked for; None: nothing did."""


def play(policy: Policy, file: str, report: Report, records: Sink | None = None) -> list[Played]:
    """
    Play the chats of *file*, each in a session of its own; remarks go into *report*.

    Raises OSError if it cannot be read, ReaderError if its format is broken.
    """
    chats: dict[str, list[RecordedCall]] = defaultdict(list)
    for call in open_calls(file, report):
        chats[call.session_id].append(call)
    return [_played(policy, name, calls, records) for name, calls in chats.items()]


def _played(policy: Policy, name: str, calls: list[RecordedCall], records: Sink | None) -> Played:
    decisions: list[Decision] = []
    played: list[dict[str, Any]] = []
    now_s = 1_800_000_000.0
    given: dict[str, Any] = {"store": MemoryStore(), "records": records, "on_decision": decisions.append}
    with policy.session("chat", clock=lambda: now_s, **given) as session:
        session.ledger.lay(lambda chain: without(chain, TIMED))
        for _, made in groupby(calls, lambda call: call.turn):
            turn, now_s = list(made), now_s + STEP_S
            if session.exhausted is None:
                session.begin_turn(calls=len(turn))
                for call in turn:
                    result = call.result if call.has_result else Envelope.error("other", LACKING)
                    envelope = session.call(call.tool, call.arguments, lambda *_, result=result: result, id=call.id)
                    played.append(_call(call, decisions[-1], envelope))
        code = session.exhausted
    return Played(Path(name).name, len(calls), tuple(played), code)


def _call(call: RecordedCall, decision: Decision, envelope: Envelope) -> dict[str, Any]:
    denial = decision.denial
    problems = [] if denial is None else denial.details.get("errors") or []
    reasons = [] if denial is None else [denial.message, *(f"{one['field']}: {one['message']}" for one in problems)]
    return {
        "tool": call.tool,
        "arguments": call.arguments if isinstance(call.arguments, str) else to_json(call.arguments).decode(),
        "decision": "ran" if denial is None else "denied",
        "code": decision.code,
        "reason": " ".join(reasons) or None,
        "observed": [one.code for one in decision.observed],
        "recorded": call.result if call.has_result else None,
        "read": envelope.to_json(),
    }
