"""
The errors that the library raises, in one place.
"""

from guardrails.core.envelope import CallDenied, CallFailed
from guardrails.core.values.errors import (
    GuardrailsError,
    LoopLimitExceeded,
    PolicyError,
    ResponseFailed,
    SessionError,
    StoreError,
)


__all__ = ["CallDenied", "CallFailed", "GuardrailsError", "LoopLimitExceeded", "PolicyError", "ResponseFailed"]
__all__ += ["SessionError", "StoreError"]
