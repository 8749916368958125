"""
Bound what the model reads of one result.
"""

from typing import Annotated, Any, ClassVar

from guardrails.core.envelope import Envelope
from guardrails.core.values.schema import Ge
from guardrails.core.values.units import ByteSize

from .base import Codes, Facts, Guard, Outcome, SessionState, ToolCall, guard


@guard
class Truncate(Guard):
    """
    Cut a result to *max_bytes* of serialised text, by its type, and say that it is not complete.

    A string gets a suffix, a list keeps leading elements and a sentinel, an object goes into `_truncated_json`. The
    work is proportional to the limit, never to the result.
    """

    codes: ClassVar[Codes] = {}

    max_bytes: Annotated[ByteSize, Ge(256)] = 65_536

    @property
    def result_bytes(self) -> int:
        return self.max_bytes

    def shape(
        self, envelope: Envelope, call: ToolCall, outcome: Outcome, state: SessionState, mine: Any, facts: Facts
    ) -> None:
        rendered = envelope.rendered
        if rendered is None and envelope.value is None:
            return
        if rendered is None or len(rendered.payload) > self.max_bytes:
            rendered = envelope.render(self.max_bytes)
        if not (rendered.complete and outcome.complete):
            envelope.cut_off(here=not rendered.complete)
