"""
A recorded call as guards see it.
"""

from typing import Final

from guardrails.core.engine.plan import Plan
from guardrails.core.text.signature import low64, sign
from guardrails.core.tools.tool_call import tool_call, unlabelled
from guardrails.core.values.types import ToolCall
from guardrails.offline.readers.base import RecordedCall


SIGN: Final = 1 << 63
SIG_BITS: Final = (1 << 64) - 1


def made_of(call: RecordedCall, call_id: str, plan: Plan) -> ToolCall:
    """
    Returns *call* under the id *call_id*. Its signature is the recorded one if arguments are not to be checked.
    """
    tool, arguments, sig = call.tool, call.arguments, call.sig
    if plan.arguments is None or arguments is None:
        if sig is not None:
            return ToolCall(tool, arguments, call_id, None, (sig + SIGN & SIG_BITS) - SIGN)
        if type(arguments) is dict:
            labels = (*plan.tool.labels, *call.labels)
            bare = unlabelled(arguments, labels) if labels else arguments
            signature, canonical = (bare is arguments and call.signed) or sign(tool, bare)
            signed = signature, None if signature is None else low64(signature), canonical
            return ToolCall.signed(tool, arguments, call_id, signed, (), None)
    return tool_call(tool, arguments, call_id, plan.arguments, (*plan.tool.labels, *call.labels))
