"""
The question to a person about a call, and what binds an approval to its very arguments.
"""

from typing import Final

from guardrails.core.state import Question
from guardrails.core.values.types import Denial, ToolCall


SHOWN_BYTES: Final = 16_384
"""Of the arguments that a person is shown."""


def question_of(call: ToolCall, denial: Denial, now_ms: int) -> Question:
    """
    Returns the question about *call* that a guard asks by its *denial*.
    """
    return Question(
        now_ms,
        denial.parks or 0,
        denial.code,
        denial.message,
        denial.hint,
        str(denial.values.get("reason", "")),
        digest_of(call),
        (call.canonical or b"")[:SHOWN_BYTES].decode(errors="ignore"),
    )


def digest_of(call: ToolCall) -> str:
    """
    Returns a hash of the tool and all of the arguments of *call*; `""` if they are not known.
    """
    if call.canonical is None:
        return ""
    from hashlib import blake2b  # and with it OpenSSL: 5 ms

    return blake2b(b"\0".join((call.tool.encode(errors="surrogatepass"), call.canonical)), digest_size=16).hexdigest()


def binds(question: Question, call: ToolCall) -> bool:
    """
    Returns whether *question* was about the very arguments of *call*, as far as both are known.
    """
    return "" in (question.digest, own := digest_of(call)) or question.digest == own
