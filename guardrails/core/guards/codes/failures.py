"""
The kinds of failures and the statuses of envelopes: not codes, but words that a person meets beside them.
"""

from typing import Final, get_args

from guardrails.core.guards.results.retry_words import NEXT
from guardrails.core.guards.results.retryable import NEVER
from guardrails.core.retries.decision import TRANSIENT
from guardrails.core.values.types import ErrorType, Status

from .explained import Explained


_KINDS: Final[dict[ErrorType, str]] = {
    "auth": "The credentials are missing, wrong or have expired (HTTP 401).",
    "permission": "The caller is known, and may not do this (HTTP 403).",
    "rate_limit": "The server wants fewer calls for a while (HTTP 429).",
    "validation": "The tool, or its server, says that the arguments are wrong (HTTP 400, 422).",
    "not_found": "The thing that the call names is not there (HTTP 404).",
    "conflict": "The state is another than the call takes it for: a lock, an edit by others (HTTP 409).",
    "precondition": "Something has to be done first, such as reading a file before it is edited (HTTP 412).",
    "server_error": "The server failed (HTTP 500).",
    "unavailable": "The service is down or overloaded (HTTP 502, 503).",
    "timeout": "The call was not answered in time. It may have happened all the same.",
    "connection": "The network failed on the way. The call may have happened all the same.",
    "cancelled": "The call was cancelled, or a person did not let it run.",
    "tool_missing": "There is no such tool.",
    "invalid_path": "The path is none, or leads to where the tool may not go.",
    "too_large": "The thing that was asked for, or sent, is too large (HTTP 413).",
    "exec_nonzero": "A command ran and ended with another exit code than 0.",
    "code_error": "Code ran and raised an exception.",
    "other": "The failure says nothing that tells its kind.",
}
_STATUSES: Final[dict[Status, tuple[str, str]]] = {
    "success": ("The tool ran and worked. `is_complete` says whether that is all.", "It ran."),
    "error": (
        "The tool ran and failed; `error_type` is the kind, explained by its name.",
        "`retryable` in the envelope says so.",
    ),
    "validation_error": ("The arguments do not fit; nothing ran.", "Not the same call; a corrected one."),
    "duplicate_call_blocked": (
        "The call would repeat an earlier one, whose result is given again as far as it is kept.",
        "No, use the earlier result.",
    ),
    "limit_reached": (
        "A limit is used up; nothing ran, and mostly the session is over.",
        "No, until somebody extends the session.",
    ),
    "denied": (
        "A guard refused the call; nothing ran, and the session goes on. `code` says which.",
        "`retryable` in the envelope says so.",
    ),
}
_DECLARE: Final = "tools: [{{match: the_tool, retryable: {}}}]"


def _failure(kind: ErrorType) -> Explained:
    passes = kind in TRANSIENT
    if passes:
        retry = (
            "Yes, it may pass by itself: after the wait, up to `retryable.max_retries` times with the same arguments."
        )
    elif kind in NEVER:
        retry = "No. The same arguments meet it again, even if the tool is declared `retryable`, until records show otherwise."
    else:
        retry = "Not by waiting. The same call may work once its cause is removed."
    return Explained(
        code=kind,
        when="`error_type` of a call that ran and failed",
        means=_KINDS[kind],
        told="Wait $wait s, then repeat the same call." if passes else NEXT[kind][1],
        retry=retry,
        settings=("retryable.max_retries", "retryable.max_same_error", "tools.retryable"),
        loosen="" if passes or kind in NEVER else _DECLARE.format("true"),
        off=_DECLARE.format("false") if passes else "",
        page="guards/retryable.md",
        kind="failure",
        status="error",
    )


def _status(name: Status) -> Explained:
    means, retry = _STATUSES[name]
    return Explained(
        code=name,
        when="`status` of an envelope",
        means=means,
        told="`code`, `message` and `next_action_hint` of the envelope say what happened and what to do.",
        retry=retry,
        page="guards/README.md",
        kind="status",
        status=name,
    )


FAILURES: Final = tuple(_failure(kind) for kind in get_args(ErrorType))
STATUSES: Final = tuple(_status(name) for name in get_args(Status))
