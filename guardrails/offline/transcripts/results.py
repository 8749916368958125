"""
The text of a recorded result, and the failure that it tells of: by the one reading of results, as in a session.
"""

import re

from ast import literal_eval
from typing import Any, Final

from guardrails.core.result import reading_of
from guardrails.core.result.content import content_of
from guardrails.core.result.kinds import kind_of_text, status_in
from guardrails.core.values.types import ErrorType

from .calls import RecordedCall
from .fields import text_of


_PRINTED: Final = re.compile(
    r"(?:CallToolResult\()?(?:meta=\S{1,200} )?(?:content=)?\[TextContent\(type='text', text=['\"]"
)
"""A result of MCP as Python prints it."""
_BLOCK: Final = re.compile(r"TextContent\(type='text', text=('(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")", re.DOTALL)


def settle(call: RecordedCall, content: Any, *, failed: bool | None = None, kind: ErrorType | None = None) -> None:
    """
    Put a result into *call*, with the *kind* of its error if the format says it. The format's own flag is *failed*; None: it has none,
    and the content is read as in a session.
    """
    told, flagged = text_of(content), False
    if _PRINTED.match(told) and (blocks := _BLOCK.findall(told)):
        flagged = told.rstrip(")").endswith("isError=True")
        told = "\n".join(str(literal_eval(block)) for block in blocks)
    if '"text"' in told:
        carried = content_of(told)
        flagged = flagged or carried.failed
        # A format without a failure there may only know that nothing was raised: then the flag stays in the text, which is judged later.
        told = told if carried.text is None or (flagged and failed is False) else carried.text
    # A failure that the format tells is read only for the kind that an envelope of this library names.
    read = reading_of(told) if failed is None or (failed and kind is None and '"error_type"' in told) else None
    failed = flagged or read.failed if failed is None and read is not None else failed
    call.has_result, call.result, call.is_error = True, told, failed
    if failed and kind is not None:
        call.error_type = kind
    elif failed:
        call.error_type = (read and read.error_type) or kind_of_text(told) or "other"
        call.http_status = (read and read.http_status) or status_in(told)
