"""
Writes a recorded session as a case: the calls with their times, results and decisions.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from guardrails.core.engine.decision import Decision
from guardrails.core.values.usage import Price
from guardrails.offline.readers.base import RecordedCall
from guardrails.policy.file.yaml_events import MAX_BYTES
from guardrails.policy.file.yaml_reader import MAX_WEIGHT

from .case import Said
from .verdict import codes_of, said_of
from .writer import Writer, as_json


_HEAD: Final = """\
# A recorded session. Secrets are left out and long texts cut; equal ones are still equal and different ones different.
version: 1
"""
_SHARE: Final = 0.9
"""Of what a case file may hold, used by the steps."""


class Decided(NamedTuple):
    """
    The decision on one call.
    """

    said: Said
    code: str | None = None
    observed: tuple[str, ...] = ()


def case_of(
    calls: Iterable[RecordedCall],
    decisions: Iterable[Decision | Decided],
    *,
    name: str | None = None,
    policy: str | None = None,
    prices: Mapping[str, Price] | None = None,
    closes: bool = False,
    whole: bool = False,
) -> str:
    """
    Returns the YAML of a case file with one case: the *calls* of one session, and the decision expected of each.

    Texts are redacted and cut deterministically. Calls without times come 100 ms apart, a repeat of a failed one a
    minute later. The case's name is *name*, else the session's id. It is written for *policy*, with the prices
    *prices*. A call that *closes* ends a session at a response of unknown price. A response whose cost another program
    did not record is written as free. Calls that do not fit into a case file are left out from the end. Raises
    ValueError if there is no call, or if the decisions are not as many. Also raises it if something would be left out
    of a case that is to be *whole*.
    """
    writer: Writer | None = None
    blocks: list[str] = []
    left_out = size = weight = 0
    for call, after, decision in _paired(calls, decisions):
        if writer is None:
            writer = Writer(call, prices or {}, closes=closes)
        if left_out:
            left_out += 1
            continue
        known = len(writer.tools)
        block = "".join(writer.steps(call, after, *_decided(decision)))
        size += len(block.encode()) + 200 * (len(writer.tools) - known)
        weight += len(block) // 32 + block.count(":") + block.count(",") + 4 * (len(writer.tools) - known)
        if blocks and (size > _SHARE * MAX_BYTES or weight > _SHARE * MAX_WEIGHT):
            left_out += 1
        else:
            blocks.append(block)
    if writer is None:
        raise ValueError("a session without calls is no case")
    if left_out and whole:
        raise ValueError(f"a case file holds the first {len(blocks):,} calls only")
    if not left_out:
        blocks += writer.rest()
    cut = f"# The last {left_out:,} calls are left out: a case file holds no more.\n" if left_out else ""
    written_for = f"policy: {as_json(policy)}\n" if policy is not None else ""
    title = f"  - name: {as_json(name or writer.stand_ins.text(writer.session_id) or 'session')}\n"
    return "".join([_HEAD, cut, written_for, "\ncases:\n", title, *writer.declared(), "    steps:\n", *blocks])


def _paired(
    calls: Iterable[RecordedCall], decisions: Iterable[Decision | Decided]
) -> Iterator[tuple[RecordedCall, RecordedCall | None, Decision | Decided]]:
    """
    Each call with the call after it, and what was decided of it.
    """
    before: tuple[RecordedCall, Decision | Decided] | None = None
    for call, decision in zip(calls, decisions, strict=True):
        if before is not None:
            yield before[0], call, before[1]
        before = call, decision
    if before is not None:
        yield before[0], None, before[1]


def _decided(decision: Decision | Decided) -> Decided:
    if isinstance(decision, Decided):
        return decision
    code = decision.code if decision.denials else decision.nudges[0][0] if decision.nudges else None
    return Decided(said_of(decision), code, codes_of(decision.observed))
