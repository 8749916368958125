"""
The kind of error that a text tells of, for failures that come as text: MCP results, shells, gateways.

An ordered table of patterns; the first that is found decides. Its accuracy on 6,098 recorded errors of real agents is
measured in `tests/test_error_text.py` (98 % agree with their labels).
"""

import re

from functools import lru_cache
from typing import Final

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ErrorType

from .error_names import error_type_of_builtin, error_type_of_name, error_type_of_status
from .tracebacks import raised_in


HEAD_CHARS: Final = 2048
TAIL_CHARS: Final = 1024
"""Of a longer text only the two ends are looked at: causes stand first, verdicts last."""

_STATUS: Final = pattern(
    r"(?:\bhttp(?:/\d(?:\.\d)?)?(?:[ _](?:error|status))?(?:[ _]code)?|\bstatus(?:[ _]?code)?|\b(?:error|response)[ _]code)"
    r"""["']?(?: is| was| of)?[\s:=(!]{0,4}(?:status: )?["']?([45]\d\d)\b"""
    r"|\b([45]\d\d) (?:client error|server error|bad request|unauthorized|forbidden|not found|too many requests"
    r"|internal server error|bad gateway|service unavailable|gateway time-?out)",
    re.IGNORECASE,
)
_EXIT: Final = pattern(
    r"exit ?code:? [1-9]|process exited with code [1-9]|command failed with exit code|returned non-zero exit status",
    re.IGNORECASE,
)
_EXIT_CHARS: Final = 300
_TRACEBACK: Final = "Traceback (most recent call last)"
_TRACED: Final = 16_384
"""Characters of the end of a text in which its stack traces are looked for."""
_ERROR_NAME: Final = pattern(r"(?:[\w<>]{1,60}\.){0,8}([A-Za-z_]\w{1,60})(?::|\s*$)")
_UNPAID: Final = pattern(
    r"insufficient[ _-]?(?:quota|funds|credits?|balance)|payment[ _-]required|billing[ _-]?(?:hard[ _-]?limit|details|not[ _-]active|account)"
    r"|(?:hard|spend(?:ing)?|usage|monthly|credit) limit (?:has been |was )?(?:reached|exceeded)|out of credits"
    r"|(?:credit|account) balance is (?:too low|insufficient|empty)|(?:exceeded|reached) your (?:current )?(?:quota|spend\w*|monthly \w+)",
    re.IGNORECASE,
)
_COMES_BACK: Final = pattern(r"\b(?:retry|try again|wait|per (?:second|minute|hour|day))\b", re.IGNORECASE)
_CLASS: Final = pattern(r"\b([A-Z][A-Za-z]{2,60}(?:Error|Exception|Timeout))\b")
_CLASS_CHARS: Final = 200
_LOCKED: Final = (
    r"database(?: \w{1,40}){0,2} is locked|table is locked|sqlite_(?:busy|locked)|deadlock|could not serialize access"
    r"|serialization failure|could not obtain lock|lock(?:ed)? by another (?:process|transaction)"
)

# No pattern has an unbounded run before its end. The shell's own words are all that is believed of a command's output:
# a test report that says `timeout` did not time out.
_SHELL: Final[tuple[tuple[ErrorType, str], ...]] = (
    ("conflict", r"index\.lock|another git process|could not get lock|resource busy"),
    ("timeout", r"command timed out|deadline exceeded|operation timed out|connection timed out"),
    ("connection", r"could not resolve host|connection refused|connection reset|network is unreachable"),
    (
        "auth",
        (r"bad credentials|authentication failed|could not read username|not logged in|permission denied \(publickey"),
    ),
    ("permission", r"permission denied|operation not permitted"),
    (
        "not_found",
        (r"no such file or directory|command not found|not found: |cannot find module|does not exist|not found"),
    ),
)
_ANY: Final[tuple[tuple[ErrorType, str], ...]] = (
    (
        "cancelled",
        (
            r"doesn't want to proceed with this tool use|rejected by (?:the )?user|user (?:rejected|declined|cancell?ed)"
            r"|sibling tool call|(?:request|operation|call|task|query|execution) (?:was |has been )?(?:cancell?ed|aborted)"
            r"|\bcancell?ederror|\baborterror|keyboardinterrupt"
        ),
    ),
    (
        "tool_missing",
        (
            r"(?:unknown|unrecogni[sz]ed|no such) (?:tool|function|skill|method|agent)\b"
            r"|\b(?:tool|skill|method|agent type|server) [\"'`][^\"'`\n]{1,100}[\"'`] (?:was |is |does )?not (?:found|exist|defined"
            r"|available|registered)|(?:^|: )method not found|\btool not found|-32601"
        ),
    ),
    (
        "precondition",
        (
            r"has not been read|has been (?:unexpectedly )?(?:modified|changed)|modified since|changed (?:on disk )?since"
            r"|precondition|not (?:yet )?initiali[sz]ed|please (?:use|call|run|create|open|load|read|generate|select) [^\n.]{1,80} first"
            r"|must be [^\n.]{1,60} first\b"
        ),
    ),
    ("code_error", r"(?:syntax|indentation|tab|name|unboundlocal)error: "),
    (
        "too_large",
        (r"exceeds (?:the )?(?:maximum|max\b)|(?:too (?:large|long)|maximum context|context[ _]length|payload too)"),
    ),
    (
        "rate_limit",
        (
            r"rate[ _-]?limit|too many requests|quota (?:exceeded|exhausted)|exceeded [^\n.]{0,60}quota|throttl|slow down|too (?:quickly|frequently|often)"
        ),
    ),
    ("unavailable", r"lock wait timeout"),
    ("timeout", r"timed[ -]?out|time-?out|deadline[ _]exceeded|took too long|did not respond (?:with)?in"),
    (
        "auth",
        (
            r"unauthenticated|unauthori[sz]ed|authenticat|invalid (?:api[ _-]?key|token|credentials?)|bad credentials"
            r"|api[ _-]?key (?:is |was )?(?:missing|invalid|required|not)|(?:missing|no|incorrect) api[ _-]?key|log ?in required"
            r"|token (?:has |is )?(?:expired|invalid)|request_denied"
        ),
    ),
    (
        "permission",
        (
            r"permission denied|access (?:is |was )?denied|forbidden|not (?:allowed|permitted|authori[sz]ed)|insufficient (?:permission|scope|privilege)"
            r"|disabled for your subscription|not subscribed|outside (?:of )?(?:the )?(?:allowed|workspace)"
        ),
    ),
    (
        "connection",
        (
            r"connection (?:error|refused|reset|closed|aborted|failed|issue|lost)|could not connect|failed to connect|unable to connect"
            r"|could not resolve|name resolution|getaddrinfo|network (?:error|is unreachable)|socket hang up|max retries exceeded"
            r"|server disconnected|fetch failed|ssl(?:error|: )|econn|enotfound|eai_again|closed the connection"
        ),
    ),
    (
        "unavailable",
        (
            r"service (?:is )?(?:temporarily )?unavailable|temporarily unavailable|bad gateway|overloaded|try again later|at capacity"
            r"|" + _LOCKED
        ),
    ),
    (
        "conflict",
        (r"already exists|(?:^|[\s:(])conflict\b(?![-/_.])|unique constraint|is being used by another"),
    ),
    (
        "validation",
        (
            r"validation error|inputvalidation|required (?:property|field|parameter|argument)|is required\b|missing \d{0,3} ?required"
            r"|unexpected (?:keyword|parameter|argument)|invalid (?:argument|parameter|input|value|format|request|json|date|type|literal)"
            r"|must be (?:an? |one |the |in |of |between |greater |less |at |after |before |different )|must not be|should be|should match"
            r"|is not (?:a |an )?(?:valid|one of)|is not of type|not (?:yet )?(?:implemented|supported)|unimplemented|old_string|string to replace not found|to replace|failed to find expected lines"
            r"|expected [^\n]{1,60} (?:but )?got|syntax error|cannot be (?:exchanged|modified|returned|cancell?ed|empty|null|parsed)"
            r"|positional argument|unknown url type|out of range|is invalid|bad request|no changes to make|unprocessable|illegal argument"
        ),
    ),
    (
        "invalid_path",
        (r"is a directory|not a directory|eisdir|enotdir|illegal operation on a directory|invalid path|path traversal"),
    ),
    (
        "not_found",
        (
            r"not[ _]found|no such|does(?:n't|n't| not) exists?|could(?:n't| not) find|can(?:not|'t| not) find|enoent|no (?:results?|matches|match"
            r"|page|record|file|module|entry)[^\n.]{0,40} (?:found|named)|not available|unknown (?:id|file|key|name|page)|no longer exists"
        ),
    ),
    (
        "server_error",
        (
            r"internal (?:server )?error|server error|internal failure|unexpected error occurred on (?:our|the) (?:side|server)"
            r"|expecting value: line \d|unexpected (?:token .{1,20} (?:in|is not valid) |end of )json"
        ),
    ),
)


def _compiled(table: tuple[tuple[ErrorType, str], ...]) -> tuple[tuple[ErrorType, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(pattern)) for kind, pattern in table)


@lru_cache(maxsize=1)
def _tables() -> tuple[tuple[tuple[ErrorType, re.Pattern[str]], ...], ...]:
    return _compiled(_SHELL), _compiled(_ANY)


def status_in_text(text: str) -> int | None:
    """
    Returns the HTTP error status that a text names (`HTTP 404`, `status code: 503`, `429 Too Many Requests`), 400 to
    599.
    """
    found = _STATUS.search(_ends(text))
    return int(found[1] or found[2]) if found else None


def error_type_from_text(text: str) -> ErrorType | None:
    """
    Returns the kind of error that *text* tells of. Returns None if no kind is recognised.

    Looks at the first 2,048 and the last 1,024 characters. A command's exit code and a traceback are recognised as what
    they are before any word in them counts.
    """
    ends = _ends(text)
    lowered = ends.lower().replace("\u2019", "'")
    shell, anything = _tables()
    traced = _of_traceback(text) if _TRACEBACK in text else None
    if _EXIT.search(ends, 0, _EXIT_CHARS):
        # A bug in a command that is a Python program is still a command that failed.
        named = None if traced == "code_error" else traced
        return named or ("exec_nonzero" if traced else _of_status(ends) or _first(shell, lowered) or "exec_nonzero")
    if traced is not None:
        return traced
    if unpaid(ends):
        return "permission"

    return _of_status(ends) or _of_class(ends) or _first(anything, lowered)


def unpaid(text: str) -> bool:
    """
    Returns whether *text* says that something has to be paid first, which no waiting does.
    """
    ends = _ends(text)
    return _UNPAID.search(ends) is not None and _COMES_BACK.search(ends) is None


def _of_status(text: str) -> ErrorType | None:
    found = _STATUS.search(text)
    return error_type_of_status(int(found[1] or found[2])) if found else None


def _of_class(text: str) -> ErrorType | None:
    found = _CLASS.search(text, 0, _CLASS_CHARS)
    return error_type_of_name(found[1]) or error_type_of_builtin(found[1]) if found else None


def _of_traceback(text: str) -> ErrorType:
    """
    Returns the kind by the last exception that says something: a wrapper does not, nor one that was cancelled beside
    another.
    """
    said: ErrorType = "code_error"
    for line in reversed(raised_in(text[-_TRACED:])):
        found = _ERROR_NAME.match(line)
        name = found[1] if found else ""
        kind = error_type_of_builtin(name) or error_type_of_name(name)
        if kind is None and re.search(_LOCKED, line, re.IGNORECASE):
            # Drivers of databases have one name for all that goes wrong there.
            kind = "unavailable"
        if kind is not None and kind != "cancelled":
            return "code_error" if kind == "validation" else kind
        said = kind or said
    return said


def _first(table: tuple[tuple[ErrorType, re.Pattern[str]], ...], text: str) -> ErrorType | None:
    return next((kind for kind, pattern in table if pattern.search(text)), None)


def _ends(text: str) -> str:
    return text if len(text) <= HEAD_CHARS + TAIL_CHARS else f"{text[:HEAD_CHARS]}\n{text[-TAIL_CHARS:]}"
