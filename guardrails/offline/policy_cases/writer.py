"""
The steps of a recorded session as YAML, call by call.
"""

import json
import re

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails.core.text.signature import masked_result_hash, parse_arguments
from guardrails.core.values.types import MICRO, micro_dollars
from guardrails.core.values.usage import Price, Usage, cost_of
from guardrails.offline.readers.base import RecordedCall

from .case import Said
from .stand_ins import StandIns


STEP_MS: Final = 100
"""From one call to the next where the session has no times: no rate that a person sets for honest work is reached."""
WAIT_MS: Final = 61_000
"""From a failed call to its repeat where there are no times: longer than the waits that a policy keeps to."""

_NOT_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(slots=True)
class _Declared:
    read_only: set[bool | None] = field(default_factory=set)
    polling: bool = False


class Writer:
    """
    The steps of one session, in the order of its calls.
    """

    def __init__(self, first: RecordedCall, prices: Mapping[str, Price], *, closes: bool = False) -> None:
        self.session_id = first.session_id
        self.stand_ins = StandIns()
        self.tools: dict[str, _Declared] = {}
        self._prices = prices
        self._closes = closes
        self._start = first.ts_ms
        self._turned = first.turn is not None
        self._now = 0
        self._first = True
        self._turn: int | None = None
        self._running: list[tuple[int, str, str]] = []
        self._failed: dict[str, int] = {}
        self._number = 0

    def steps(
        self, call: RecordedCall, after: RecordedCall | None, said: Said, code: str | None, observed: tuple[str, ...]
    ) -> Iterator[str]:
        """
        Returns the steps of *call*: the calls that have ended by then, the model response that made it, the call
        itself.
        """
        self._number += 1
        tool = self.stand_ins.text(call.tool or "?")
        self._declare(tool, call)
        arguments = self.stand_ins.arguments(call.tool, _arguments(call), call.sig)
        same = f"{tool} {json.dumps(arguments, sort_keys=True)}"
        self._pass_time(call, self._failed.get(same))
        yield from self.rest(self._now)
        yield from self._response(call)
        fields = {"call": as_json(tool), "at": _seconds(self._now)}
        if arguments:
            fields["arguments"] = as_json(arguments)
        if said == "pending":
            # A person is taken to say yes: what was recorded ran.
            asked = as_json(f"asked {self._number}")
            yield _step({**fields, "id": asked, "expect": said, "code": as_json(code or "unknown")})
            yield _step({"approve": asked, "at": _seconds(self._now)})
            said = "allow"
        if said != "deny":
            failed = bool(call.is_error or call.error_type is not None)
            if failed:
                self._failed[same] = self._now
            else:
                self._failed.pop(same, None)
            fields |= self._end(call, after, failed=failed)
        if said != "allow":
            fields |= {"expect": said, "code": as_json(code or "unknown")}
        if observed:
            fields["observed"] = as_json(observed)
        yield _step(fields)

    def rest(self, now: int | None = None) -> Iterator[str]:
        """
        Returns the ends, by *now*, of calls that ran beside others.
        """
        due = sorted((one for one in self._running if now is None or one[0] <= now), key=lambda one: one[0])
        self._running = [one for one in self._running if now is not None and one[0] > now]
        for end, call_id, fields in due:
            yield f"      - settle: {call_id}\n        at: {_seconds(end)}\n{fields}"

    def declared(self) -> Iterator[str]:
        """
        Returns the tools of the session, if the recording declares any of them.
        """
        said = {name: _declarations(declared) for name, declared in self.tools.items()}
        if any(said.values()):
            yield "    tools:\n"
            for name, settings in said.items():
                yield f"      - {{name: {as_json(name)}{settings}}}\n"

    def _declare(self, tool: str, call: RecordedCall) -> None:
        declared = self.tools.setdefault(tool, _Declared())
        declared.read_only.add(call.read_only)
        declared.polling = declared.polling or call.polling

    def _pass_time(self, call: RecordedCall, failed_ms: int | None) -> None:
        if self._start is None:
            over = 0 if failed_ms is None else failed_ms + WAIT_MS
            self._now = max(self._now if self._first else self._now + STEP_MS, over)
        elif call.ts_ms is None:
            # Its place is all that is known: what was called before it is over.
            self._now = max([self._now, *(end for end, _, _ in self._running)])
        else:
            self._now = max(self._now, call.ts_ms - self._start)
        self._first = False

    def _response(self, call: RecordedCall) -> Iterator[str]:
        begun = self._turned and call.turn is not None and call.turn != self._turn
        self._turn = call.turn if begun else self._turn
        used = Usage(max(call.tokens_in or 0, 0), max(call.tokens_out or 0, 0))
        cost: int | None = None
        if call.cost_usd is not None:
            cost = max(micro_dollars(call.cost_usd), 0)
        elif call.model is not None and self._prices:
            cost = cost_of(used, call.model, self._prices)
        told = call.tokens_in is not None or call.tokens_out is not None
        if told and cost is None and self._closes and call.decision is None:
            # Nobody asked what it costs, so that it ended nothing.
            cost = 0
        at = f", at: {_seconds(self._now)}"
        if told or cost is not None:
            shown = f"tokens: {used.total}"
            shown += "" if cost is None else f", cost_usd: {cost // MICRO}.{cost % MICRO:06d}"
            shown += "" if begun else ", begins_turn: false"
            yield f"      - {{charge: {{{shown}}}{at}}}\n"
        elif call.decision is not None and call.model is not None:
            yield f"      - {{charge: {{{'' if begun else 'begins_turn: false'}}}{at}}}\n"
        elif begun:
            yield f"      - {{turn: 0{at}}}\n"

    def _end(self, call: RecordedCall, after: RecordedCall | None, *, failed: bool) -> dict[str, str]:
        """
        Returns the end of the call. If others were called meanwhile, its end is kept for later.
        """
        if not call.has_result:
            return {"lost": "true"}
        ended = {"error": self._failure(call)} if failed else {"result": as_json(self._result(call))}
        lasted = call.duration_ms if self._start is not None else None
        if not lasted or lasted < 0:
            return ended
        end = self._now + lasted
        alone = after is None or after.ts_ms is None or self._start is None or after.ts_ms - self._start >= end
        if alone and not self._running:
            self._now = end
            return {"takes": f"{lasted}ms", **ended}
        call_id = as_json(f"call {self._number}")
        self._running.append((end, call_id, "".join(f"        {key}: {value}\n" for key, value in ended.items())))
        return {"id": call_id, "pending": "true"}

    def _result(self, call: RecordedCall) -> str:
        if call.plain_hash is not None:
            return self.stand_ins.text(call.result or "not recorded", ("result", call.plain_hash))
        if call.result is None:
            # A result of which nothing is known is like no other.
            return self.stand_ins.text("not recorded", ("unknown result", self._number))
        return self.stand_ins.text(call.result)

    def _failure(self, call: RecordedCall) -> str:
        kind = call.error_type or "other"
        fields: dict[str, Any] = {"type": kind}
        told = call.masked_hash
        if told is None and call.result is not None:
            told = masked_result_hash(call.result)
        if told is not None:
            fields["message"] = self.stand_ins.text(call.result or "not recorded", ("error", told), numbers=False)
        if call.http_status is not None and 100 <= call.http_status <= 599:
            fields["http_status"] = call.http_status
        if call.retry_after_ms is not None:
            fields["retry_after"] = f"{max(call.retry_after_ms, 0)}ms"
        return kind if len(fields) == 1 else as_json(fields)


def _arguments(call: RecordedCall) -> Any:
    """
    The arguments of *call*: as a map if its text is one, since a text that is cut is no JSON any more.
    """
    arguments = call.arguments
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        value, problem = parse_arguments(arguments)
        if problem is None and isinstance(value, dict):
            return value
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _declarations(declared: _Declared) -> str:
    said = ""
    if declared.read_only == {True} or False in declared.read_only:
        said += f", read_only: {'true' if declared.read_only == {True} else 'false'}"
    return said + (", polling: true" if declared.polling else "")


def _step(fields: dict[str, str]) -> str:
    lines = [f"{key}: {value}\n" for key, value in fields.items()]
    return "".join(f"{'      - ' if n == 0 else '        '}{line}" for n, line in enumerate(lines))


def _seconds(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}" if ms % 1000 else str(ms // 1000)


def as_json(value: Any) -> str:
    """
    Returns *value* as JSON that YAML reads alike.
    """
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
