"""
The kinds of failure, as one table: the statuses, names and words that stand for each.

Clients are known by the numbers and names that they document, so nothing is imported for them. Of a class name its parts count
(`APITimeoutError`). A text is asked for an exit code, a traceback, an HTTP status and the name of a class before its words count.
"""

import re

from functools import lru_cache
from typing import Any, Final

from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.text.traces import TRACEBACK
from guardrails.core.values.names import TOKEN
from guardrails.core.values.types import ErrorType


_TABLE: Final = r"""
not_found | | | could not resolve|name or service not known|enotfound|nodename nor servname|no such host|name does not resolve|unknown host
unavailable | | | connection refused|econnrefused|actively refused
validation | | | \bfile://|unsupported (?:url )?(?:protocol|scheme)|missing an? .{0,20}(?:protocol|scheme)
cancelled | 499 | Aborted AbortError ECANCELED KeyboardInterrupt GeneratorExit InterruptedError | doesn't want to proceed|(?:rejected|interrupted) by (?:the )?user|user (?:rejected|declined|cancell?ed)|sibling tool call|abort ?error|cancell?ed ?error|(?:request|operation|call|task|query|execution) (?:was |has been )?(?:cancell?ed|aborted)
tool_missing | | Unimplemented | (?:unknown|unrecogni[sz]ed|no such) (?:tool|function|skill|method|agent)\b|(?:^|: )method not found|-32601|\b(?:tool|skill|agent type|server) (?:~ )?(?:was |is |does )?not (?:found|exist|defined|available|registered)
precondition | 412 424 428 507 | ConditionalCheckFailedException StaleDataError ENOSPC EDQUOT | has not been read|has been (?:unexpectedly )?(?:modified|changed)|(?:modified|changed|changed on disk) since|precondition|not (?:yet )?initiali[sz]ed|no space left|\bplease (?:use|call|run|create|open|load|read|generate|select) .{1,80} first\b|must be .{1,60} first\b|\bstale\b
code_error | | ArithmeticError AssertionError AttributeError BufferError ImportError IndexError KeyError NameError TypeError NotImplementedError RecursionError ReferenceError StopAsyncIteration StopIteration SyntaxError SystemError ZeroDivisionError OverflowError | (?:syntax|indentation|tab|name|unboundlocal)error:\s
too_large | 413 414 431 | MemoryError EFBIG E2BIG ENOMEM EMSGSIZE | exceeds (?:the )?max|too (?:large|long)\b|maximum context|context[ _]length|payload too
rate_limit | 429 | RetryAfter FloodWait PriorRequestNotComplete | rate[ _-]?limit|too many requests|quota (?:exceeded|exhausted)|exceeded .{0,60}quota|throttl|slow down|too (?:quickly|frequently|often)|resource exhausted|(?:request|throughput) ?limit exceeded|throughput exceeded
timeout | 408 504 522 524 598 599 | ETIMEDOUT | timed[ -]?out|deadline[ _]exceeded|took too long|did not respond|(?<!invalid )\btime-?out\b(?=\W*$|[.!)\]}"':,]\W|\n| (?:error|exceed|expired|reached|occur|after|while|wait|of \d|for|when|on|to))
auth | 401 407 440 511 | AuthError AuthFailure InvalidClientTokenId SignatureDoesNotMatch UnrecognizedClientException InvalidAccessKeyId RefreshError | unauthenticated|unauthori[sz]ed|not (?:authenticated|logged in)|authentication ?(?:failed|error|required|credentials)|request_denied|log ?in required|could not read username|denied \(publickey|bad credentials|no ?credentials|(?:invalid|incorrect|missing|expired|bad|wrong|no) (?:api[ _-]?key|(?:access |auth )?token\b(?! at)|credentials?\b|password)|api[ _-]?key (?:is |was )?(?:missing|invalid|required|not)|token (?:has |is )?(?:expired|invalid)
permission | 402 403 451 | PermissionError BillingHardLimitReached BillingNotActive EACCES EPERM EROFS | permission denied|access (?:is |was )?denied|forbidden|(?<!method )not (?:allowed|permitted|authori[sz]ed)|insufficient (?:permission|scope|privilege|quota)|not subscribed|disabled for your subscription|outside (?:of )?(?:the )?(?:allowed|workspace)
connection | 444 525 526 | ReadError WriteError CloseError ChunkedEncodingError BadStatusLine IncompleteRead IncompleteReadError ClientPayloadError AutoReconnect EOFError EndOfStream BrokenPipeError ClosedResourceError BrokenResourceError EAI_AGAIN ECONNRESET ECONNABORTED EPIPE EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN | connection (?:error|reset|closed|aborted|failed|issue|lost)|(?:could not|failed to|unable to) connect|socket hang up|econn|eai_again|temporary failure|network (?:error|is unreachable)|max retries exceeded|disconnected|fetch failed|\bssl(?: ?error|: )|certificate|closed the connection|(?:connect|connector|protocol|proxy|transport) error|unreachable
unavailable | 425 502 503 521 523 529 530 | EMFILE ENFILE ENOBUFS ECONNREFUSED ConnectionRefusedError TransactionRollbackError | (?:temporarily|currently|service(?: is)?) unavailable|^unavailable|bad gateway|overloaded|try again later|at capacity|\bcircuit|broken (?:executor|process)
conflict | 409 423 | FileExistsError BlockingIOError EEXIST EBUSY ETXTBSY EAGAIN ENOTEMPTY Locked LockError | already exists|(?:^|[\s:(])conflict\b(?![-/_.])|unique constraint|is being used by another|resource (?:is )?(?:busy|locked|in use)|another git process|integrity error|violation|duplicate (?:key|entry)
invalid_path | | EISDIR ENOTDIR ENAMETOOLONG ELOOP NotADirectoryError IsADirectoryError | (?:is|not|on) a directory\b|eisdir|enotdir|invalid path|path traversal
validation | 501 505 506 508 510 | MissingSchema UnsupportedProtocol UsageError BadParameter MethodNotAllowed DataError ProgrammingError ValueError | validation|required (?:property|field|parameter|argument)|is required\b|missing \d{0,3} ?required|\binvalid\b|old_string|malformed|syntax error|unexpected (?:keyword|parameter|argument)|should (?:be|match)|is not (?:a |an |of )?(?:valid|one of|type)|must (?:be (?:an? |one |the |in |of |between |greater |less |at |after |before |different )|not be)|un(?:supported|implemented|processable)|to replace|bad request|positional argument|not (?:yet )?(?:implemented|supported)|failed to find expected|expected .{1,60} got|unknown url type|out of range|no changes to make|cannot be (?:exchanged|modified|returned|cancell?ed|empty|null|parsed)
not_found | 404 410 | Gone ENOENT ENXIO ENODEV ESRCH ENOTFOUND EAI_NONAME LookupError ProcessLookupError | not[ _]found|no such|does(?:n't| not) exist|could(?:n't| not) find|can(?:not|'t| not) find|enoent|not available|no longer exists|no (?:results?|match(?:es)?|page|record|file|module|entry)\b.{0,40} (?:found|named)|unknown (?:id|file|key|name|page)
server_error | | ContentTypeError DecodingError ContentDecodingError Internal INTERNAL DataLoss APIResponseValidationError ResponseValidationError | internal (?:server )?(?:error|failure)|server error|unexpected error occurred|expecting value: line \d|unexpected (?:token .{1,20} (?:in|is not valid) |end of )json
exec_nonzero |  | CalledProcessError SystemExit
"""
"""
Of each kind the statuses of HTTP, names of classes and codes, and the words, in the order in which they are asked: of a text,
and of any other name, in which `APITimeoutError` is `api timeout error`. An unknown host is no lost connection; a refused connection did not
happen.
"""
_LOCKED: Final = r"""(?x)(?:database|table)(?:\ \w{1,40}){0,2}\ is\ locked|sqlite[\ _](?:busy|locked)|deadlock|could\ ?not\ serialize|serialization\ failure
|could\ not\ obtain\ lock|lock\ (?:wait\ timeout|not\ available)|lock(?:ed)?\ by\ another"""
"""A lock that another work holds."""
_JSON_RPC: Final = """-32700 validation -32600 validation -32602 validation -32601 tool_missing -32603 server_error -32000 connection -32001 timeout -32002 not_found -32042 auth -32800 cancelled"""
"""And of the SDKs of MCP."""
_LASTS: Final = r"""(?ix)certificate|self[-\ ]signed|already\ exists|constraint|violation|duplicate\ (?:key|entry)|not\ empty
|(?:quota|limit)\b.{0,60}\b(?:per|a|each)\ (?:day|month)|(?:daily|monthly|per[-\ ]day)\ .{0,20}(?:quota|limit)"""
"""Of kinds that may pass, these do not."""
_UNPAID: Final = r"""(?ix)insufficient[\ _-]?(?:quota|funds|credits?|balance)|payment[\ _-]required|billing[\ _-]?(?:hard[\ _-]?limit|details|not[\ _-]active|account)
|(?:hard|spend(?:ing)?|usage|monthly|credit)\ limit\ (?:has\ been\ |was\ )?(?:reached|exceeded)|out\ of\ credits|balance\ is\ (?:too\ low|insufficient|empty)
|(?:exceeded|reached)\ your\ (?:current\ )?(?:quota|spend\w*|monthly\ \w+)"""
_EXIT: Final = r"(?i)exit ?(?:code|status):? [1-9]|process exited with code [1-9]|command failed with exit code|non-zero exit status"
_STATUS: Final = r"""(?ix)(?:\bhttp(?:/\d(?:\.\d)?)?(?:[\ _](?:error|status))?(?:[\ _]code)?|\bstatus(?:[\ _]?code)?|\b(?:error|response)[\ _]code)
["']?(?:\ is|\ was|\ of)?[\s:=(!]{0,4}(?:status:\ )?["']?([45]\d\d)\b|\b([45]\d\d)[\ :-]{1,3}(?:\w{1,12}\ )?(?:client\ error|server\ error|bad\ request|unauthori[sz]ed
|forbidden|not\ found|too\ many\ requests|internal\ server\ error|bad\ gateway|service\ unavailable|gateway\ time-?out|conflict|gone|locked)\b"""
_CLASS: Final = r"\b([A-Z][A-Za-z]{2,60}(?:Error|Exception|Timeout))\b"
_RAISED: Final = r"(?m)^[ |]{0,40}[ \t][^\n]*+\n[ |]{0,40}(?:[\w<>]{1,60}\.){0,8}([A-Za-z_]\w{1,60})(?::([^\n]*)|[ \t]*$)|^ {0,40}([A-Z]\w{2,60}) {2,80}Traceback"
_NAMES: Final = r"(?<=\w )[\"'`][^\"'`\s]{1,100}[\"'`]|(?<![\w:/.~-])[\w.~-]{0,80}(?:/[\w.~-]{1,80}){1,20}|\b[\w-]{1,80}\.[a-z]\w{0,4}\b"
"""Names, paths and files in a text: `credentials.json was not found` speaks of no credentials."""


@lru_cache(maxsize=1)
def _rows() -> list[tuple[Any, list[str], list[str], re.Pattern[str]]]:
    """
    Returns the rows of the table: kind, statuses, names, words.
    """
    rows: list[Any] = [("unavailable", [], [], re.compile(_LOCKED))]
    for text in _TABLE.strip().split("\n"):
        kind, statuses, names, words = (*(part.strip() for part in text.split("|", 3)), "")[:4]
        rows.append((kind, statuses.split(), names.split(), re.compile(words or "(?!)")))
    return rows


def kind_of_status(status: int) -> ErrorType | None:
    """
    Returns the kind of an HTTP status: 400 to 599, None outside.
    """
    other: Any = "validation" if 400 <= status < 500 else "server_error" if 500 <= status < 600 else None
    return next((row[0] for row in _rows() if str(status) in row[1]), other)


@cached_if_short(512, 100)
def _named(name: str) -> ErrorType | None:
    words = " ".join(TOKEN.findall(name)).lower()
    return next((row[0] for row in _rows() if name in row[2] or name == row[0]), None) or _worded(words)


def _worded(text: str) -> ErrorType | None:
    return next((row[0] for row in _rows() if row[3].search(text)), None)


def kind_of_name(name: object) -> ErrorType | None:
    """
    Returns the kind that a class name or a code stands for: `ReadTimeout`, `RESOURCE_EXHAUSTED`, `rate_limit_exceeded`, `ENOENT`.
    """
    return _named(name) if isinstance(name, str) and 0 < len(name) <= 100 and " " not in name else None


def kind_of_code(code: object) -> ErrorType | None:
    """
    Returns the kind of a code of JSON-RPC, in whose place some servers of MCP say an HTTP status.
    """
    found = re.search(rf"(?: |^){code} (\w+)", _JSON_RPC) if type(code) is int and code < 0 else None
    return kind_of_status(code) if type(code) is int and found is None else found and found[1]  # type: ignore[return-value]


def status_in(text: str) -> int | None:
    """
    Returns the HTTP error status that a text names (`HTTP 404`, `status code: 503`, `429 Too Many Requests`).
    """
    found = re.search(_STATUS, ends_of(text))
    return int(found[1] or found[2]) if found else None


def kind_of_text(text: str) -> ErrorType | None:
    """
    Returns the kind of failure that *text* tells of, by its two ends; None if it tells of none.
    """
    ends, traced = ends_of(text), _traced(text[-16_384:]) if TRACEBACK in text else None
    status = status_in(ends)
    by_status = None if status is None else kind_of_status(status)
    if re.search(_EXIT, ends[:300]):
        # A bug in a command that is a Python program is still a command that failed.
        told = by_status
        return (traced if traced != "code_error" else None) or (None if traced else told) or "exec_nonzero"
    if traced is not None or unpaid(ends):
        return traced or "permission"
    found = re.search(_CLASS, ends[:200])
    said = re.sub(_NAMES, "~", ends.lower().replace("\u2019", "'"))
    named = by_status or (kind_of_name(found[1]) if found else None)
    return named or _worded(said)


def unpaid(text: str) -> bool:
    """
    Returns whether *text* says that something has to be paid first, which no waiting does.
    """
    return (
        re.search(_UNPAID, text) is not None
        and re.search(r"(?i)\b(?:retry|try again|wait|per (?:second|minute|hour))\b", text) is None
    )


def passing(kind: ErrorType, text: str) -> tuple[bool | None, int | None]:
    """
    Returns whether a failure passes by itself, where its kind alone does not say it, and the wait that is known of its cause: a conflict
    passes; a failed certificate, a daily quota and a name that is taken do not; a lock of a database passes within a second.
    """
    said = ends_of(text).lower()
    if kind not in ("conflict", "connection", "rate_limit"):
        return None, 250 if kind == "unavailable" and re.search(_LOCKED, said) else None
    return False if re.search(_LASTS, said) else True if kind == "conflict" else None, None


def ends_of(text: str) -> str:
    """
    Returns the two ends of a long text: causes stand first, verdicts last.
    """
    return text if len(text) <= 3072 else f"{text[:2048]}\n{text[-1024:]}"


def _traced(text: str) -> ErrorType:
    """
    Returns the kind by the last exception that says something: a wrapper does not, nor one that was cancelled beside another.
    """
    said: ErrorType = "code_error"
    for name, message, heading in reversed(re.findall(_RAISED, text if "\n" in text else text.replace("\\n", "\n"))):
        # Drivers of databases have one name for all that goes wrong there.
        kind = kind_of_name(name or heading) or ("unavailable" if _worded(message.lower()) == "unavailable" else None)
        if kind is not None and kind != "cancelled":
            return "code_error" if kind == "validation" else kind
        said = kind or said
    return said
