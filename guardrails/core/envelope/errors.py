"""
The exceptions that carry an envelope.
"""

from guardrails.core.values.errors import GuardrailsError

from .envelope import Envelope


class CallDenied(GuardrailsError):
    """
    A call was refused and the caller wanted the tool's own value; *envelope* says why.
    """

    def __init__(self, envelope: Envelope) -> None:
        super().__init__(f"{envelope.code}: {envelope.message or envelope.status}")
        self.envelope = envelope


class CallFailed(GuardrailsError):
    """
    A tool ran without an exception, but its result is a failure, and the caller wanted the tool's own value; *envelope*
    says which.
    """

    def __init__(self, envelope: Envelope) -> None:
        said = envelope.error_message or envelope.message or envelope.status
        super().__init__(f"{envelope.error_type or envelope.code or envelope.status}: {said}")
        self.envelope = envelope
