"""
Checks a step's keys together: which go with which, and what one step asks of another.
"""

from collections.abc import Iterator
from typing import Final

from guardrails.core.envelope.envelope import FIELDS
from guardrails.policy.file import Entry, Mistake, Node, quoted, suggestion


MAX_STEPS: Final = 100_000
"""Steps of one case, repetitions counted."""

_RAN: Final = frozenset({"result", "result_bytes", "error", "cost_usd", "tokens"})
_KINDS: Final[dict[str, frozenset[str]]] = {
    "call": _RAN
    | {"at", "arguments", "id", "pending", "lost", "takes", "expect", "code", "observed", "status", "envelope"},
    "settle": _RAN | {"at", "status", "envelope"},
    "turn": frozenset({"at"}),
    "charge": frozenset({"at"}),
    "request": frozenset({"at"}),
    "wait": frozenset(),
    "extend": frozenset({"at"}),
    "approve": frozenset({"at"}),
    "refuse": frozenset({"at", "reason"}),
    "exhausted": frozenset({"at"}),
    "repeat": frozenset({"steps"}),
}
_KEYS: Final = frozenset().union(*_KINDS.values())
_ENDS: Final[tuple[str, ...]] = ("result", "result_bytes", "error", "pending", "lost")

Map = dict[str, Entry]


def step_mistakes(case: Node) -> Iterator[Mistake]:
    """
    Returns the mistakes in the steps of a case beyond the types of single values.
    """
    steps = _steps(case)
    pending: set[str] = set()
    for step in _flat(steps):
        yield from _kind_mistakes(step)
        if isinstance(step.value, dict):
            yield from _settle_mistakes(step.value, pending)
    if _total(steps) > MAX_STEPS and isinstance(case.value, dict):
        yield Mistake(case.value["steps"].key, f"steps: more than {MAX_STEPS} steps, repetitions counted")


def _steps(node: Node) -> list[Node]:
    entry = node.value.get("steps") if isinstance(node.value, dict) else None
    return entry.node.value if entry is not None and isinstance(entry.node.value, list) else []


def _flat(steps: list[Node]) -> Iterator[Node]:
    for step in steps:
        yield step
        yield from _flat(_steps(step))


def _total(steps: list[Node]) -> int:
    return sum(_weight(step) for step in steps)


def _weight(step: Node) -> int:
    written = step.value if isinstance(step.value, dict) else {}
    times = [n for key in ("repeat", "request") if isinstance(n := _value(written, key), int)]
    return max([1, *times]) * max(1, _total(_steps(step)))


def _value(step: Map, key: str) -> object:
    entry = step.get(key)
    return None if entry is None else entry.node.value


def _kind_mistakes(node: Node) -> Iterator[Mistake]:
    step = node.value
    if not isinstance(step, dict):
        return
    kinds = [key for key in step if key in _KINDS]
    if not kinds:
        # An unknown key is told by itself, and may be the kind that is missing.
        if step.keys() <= _KEYS:
            yield Mistake(node.position, f"a step needs one of {', '.join(map(quoted, _KINDS))}")
        return
    kind, *more = kinds
    for other in more:
        yield Mistake(step[other].key, f"a step is one thing: {quoted(kind)} or {quoted(other)}, write two steps")
    if more:
        return
    for key in step:
        if key in _KEYS and key not in _KINDS[kind]:
            known = ", ".join(map(quoted, sorted(_KINDS[kind]))) or "no other key"
            yield Mistake(step[key].key, f"{quoted(key)} does not go with {quoted(kind)}, which takes {known}")
    if kind == "repeat" and "steps" not in step:
        yield Mistake(step["repeat"].key, "missing key `steps`: what is to be repeated")
    if kind in ("call", "settle"):
        yield from _call_mistakes(step)
    if "at" in step:
        yield from _time_mistakes(step["at"])


def _call_mistakes(step: Map) -> Iterator[Mistake]:
    ends = [key for key in _ENDS if key in step]
    for key in ends[1:]:
        yield Mistake(step[key].key, f"a call ends in one way: {quoted(ends[0])} or {quoted(key)}")
    said = _value(step, "expect") or "allow"
    if said in ("deny", "nudge", "pending") and "code" not in step:
        yield Mistake(step["expect"].key, f"missing key `code`: which guard is to {said}, and why")
    if said == "allow" and "code" in step:
        yield Mistake(
            step["code"].key, "`code` needs `expect: deny`, `pending` or `nudge`; of an observed one, write `observed`"
        )
    open_end = next((key for key in ("pending", "lost") if key in step), None)
    for key in ("takes", "cost_usd", "tokens", "status", "envelope") if open_end else ():
        if key in step and (said not in ("deny", "pending") or key not in ("status", "envelope")):
            advice = "write it at its `settle`" if open_end == "pending" else "it has no end"
            yield Mistake(step[key].key, f"{quoted(key)} of a {open_end} call is not known: {advice}")
    fields = _value(step, "envelope")
    for field, entry in fields.items() if isinstance(fields, dict) else ():
        if field not in FIELDS:
            near = suggestion(field, FIELDS) or f", known here: {', '.join(map(quoted, FIELDS))}"
            yield Mistake(entry.key, f"unknown key {quoted(field)}{near}")


def _settle_mistakes(step: Map, pending: set[str]) -> Iterator[Mistake]:
    opened, settled = _value(step, "id"), _value(step, "settle")
    if isinstance(opened, str) and "pending" in step:
        pending.add(opened)
    if isinstance(settled, str) and settled not in pending:
        near = suggestion(settled, sorted(pending))
        yield Mistake(step["settle"].place, f"settle: no call above has `id: {settled}` and `pending: true`{near}")


def _time_mistakes(entry: Entry) -> Iterator[Mistake]:
    written = entry.node.written
    # YAML reads `+5` as the number 5, which would be a time after the start.
    if written.startswith("+") and not isinstance(entry.node.value, str):
        yield Mistake(entry.place, f"at: `{written}` is read as a number: write `{written}s`")
