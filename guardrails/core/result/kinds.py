"""
The kinds of failure, as one table: what follows each, and the statuses, names and words that stand for it.

Clients are known by the numbers and names that they document, so nothing is imported for them. Of a class name its parts count
(`APITimeoutError`). A text is asked for an exit code, a traceback, an HTTP status and the name of a class before its words count.
"""

import errno
import re

from functools import lru_cache
from typing import Final, NamedTuple

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.types import ErrorType, NextAction


_TABLE: Final = r"""
not_found
  could not resolve|name or service not known|enotfound|nodename nor servname|no such host|name does not resolve
unavailable
  connection refused|econnrefused|actively refused|(?:database|table)(?: \w{1,40}){0,2} is locked|sqlite_(?:busy|locked)|deadlock|could not serialize
  |serialization failure|could not obtain lock|lock wait timeout|lock(?:ed)? by another
validation
  \bfile://|unsupported (?:url )?(?:protocol|scheme)|missing an? .{0,20}(?:protocol|scheme)
cancelled | ask_user | 499 | Cancel UserRejected =Aborted =AbortError =ECANCELED =KeyboardInterrupt =GeneratorExit =InterruptedError
  doesn't want to proceed|(?:rejected|interrupted) by (?:the )?user|user (?:rejected|declined|cancell?ed)|sibling tool call|aborterror|cancell?ederror
  |(?:request|operation|call|task|query|execution) (?:was |has been )?(?:cancell?ed|aborted)
tool_missing | give_up | | ToolNotFound UnknownTool NoSuchTool MethodNotFound =Unimplemented
  (?:unknown|unrecogni[sz]ed|no such) (?:tool|function|skill|method|agent)\b|(?:^|: )method not found|-32601
  |\b(?:tool|skill|agent type|server) (?:~ )?(?:was |is |does )?not (?:found|exist|defined|available|registered)
precondition | fix_precondition | 412 424 428 507 | Precondition =ConditionalCheckFailedException =StaleDataError =ENOSPC =EDQUOT
  has not been read|has been (?:unexpectedly )?(?:modified|changed)|(?:modified|changed|changed on disk) since|precondition|not (?:yet )?initiali[sz]ed
  |no space left|\bplease (?:use|call|run|create|open|load|read|generate|select) .{1,80} first\b|must be .{1,60} first\b
code_error | fix_arguments | | =ArithmeticError =AssertionError =AttributeError =BufferError =ImportError =IndexError =KeyError =NameError =EOFError =TypeError
  | =NotImplementedError =RecursionError =ReferenceError =StopAsyncIteration =StopIteration =SyntaxError =SystemError =ZeroDivisionError =OverflowError
  (?:syntax|indentation|tab|name|unboundlocal)error:\s
too_large | fix_arguments | 413 414 431 | TooLarge TooLong ContextLength =MemoryError =EFBIG =E2BIG =ENOMEM =EMSGSIZE
  exceeds (?:the )?max|too (?:large|long)\b|maximum context|context[ _]length|payload too
rate_limit | | 429 | RateLimit Ratelimit TooManyRequests Throttl ResourceExhausted SlowDown LimitExceeded ThroughputExceeded =RetryAfter =FloodWait
  rate[ _-]?limit|too many requests|quota (?:exceeded|exhausted)|exceeded .{0,60}quota|throttl|slow down|too (?:quickly|frequently|often)
timeout | | 408 504 522 524 598 599 | Timeout TimedOut DeadlineExceeded =ETIMEDOUT
  timed[ -]?out|deadline[ _]exceeded|took too long|did not respond
  |(?<!invalid )\btime-?out\b(?=\W*$|[.!)\]}"':,]\W|\n| (?:error|exceed|expired|reached|occur|after|while|wait|of \d|for|when|on|to))
auth | ask_user | 401 407 440 511 | Authentication Unauthenticated Unauthorized Credentials InvalidToken ExpiredToken AuthError TokenExpired LoginRequired
  | AuthFailure InvalidAccessKey InvalidApiKey InvalidClientToken SignatureDoesNotMatch UnrecognizedClient =RefreshError
  unauthenticated|unauthori[sz]ed|not (?:authenticated|logged in)|authentication (?:failed|error|required|credentials)|request_denied|log ?in required
  |(?:invalid|incorrect|missing|expired|bad|wrong|no) (?:api[ _-]?key|(?:access |auth )?token\b(?! at)|credentials?\b|password)|could not read username
  |api[ _-]?key (?:is |was )?(?:missing|invalid|required|not)|denied \(publickey|token (?:has |is )?(?:expired|invalid)
permission | ask_user | 402 403 451 | PermissionDenied PermissionError Forbidden AccessDenied NotAuthorized NotAllowed InsufficientQuota
  | BillingHardLimit BillingNotActive =EACCES =EPERM =EROFS
  permission denied|access (?:is |was )?denied|forbidden|(?<!method )not (?:allowed|permitted|authori[sz]ed)|insufficient (?:permission|scope|privilege)
  |not subscribed|disabled for your subscription|outside (?:of )?(?:the )?(?:allowed|workspace)|operation not permitted
connection | | 444 525 526 | Connect Disconnected Network SSL Certificate ProtocolError ProxyError NameResolution Unreachable TransportError ClosedResource
  | =ReadError =WriteError =CloseError =ChunkedEncodingError =BadStatusLine IncompleteRead PayloadError =AutoReconnect BrokenResource BrokenPipe =EndOfStream
  | =EAI_AGAIN =ECONNRESET =ECONNABORTED =EPIPE =EHOSTUNREACH =EHOSTDOWN =ENETUNREACH =ENETDOWN
  connection (?:error|reset|closed|aborted|failed|issue|lost)|(?:could not|failed to|unable to) connect|socket hang up|econn|eai_again|temporary failure
  |network (?:error|is unreachable)|max retries exceeded|server disconnected|fetch failed|\bssl(?:error|: )|certificate|closed the connection
unavailable | | 425 502 503 521 523 529 530 | Unavailable Overloaded BadGateway Circuit BrokenExecutor BrokenProcessPool Deadlock SerializationFailure
  | CouldNotSerialize TransactionRollback LockNotAvailable =SqliteBusy =SqliteLocked =EMFILE =ENFILE =ENOBUFS =ECONNREFUSED =ConnectionRefusedError
  (?:temporarily|currently|service(?: is)?) unavailable|bad gateway|overloaded|try again later|at capacity
conflict | fix_precondition | 409 423 | Conflict AlreadyExists IntegrityError Duplicate Locked InUse LockError =FileExistsError =BlockingIOError =EEXIST
  | =EBUSY =ETXTBSY =EAGAIN =ENOTEMPTY
  already exists|(?:^|[\s:(])conflict\b(?![-/_.])|unique constraint|is being used by another|resource (?:is )?(?:busy|locked)|another git process
invalid_path | fix_arguments | | =EISDIR =ENOTDIR =ENAMETOOLONG =ELOOP =NotADirectoryError =IsADirectoryError
  (?:is|not|on) a directory\b|eisdir|enotdir|invalid path|path traversal
validation | fix_arguments | 501 505 506 508 510 | Validation InvalidArgument InvalidParam InvalidRequest InvalidInput Unprocessable BadRequest OutOfRange
  | InvalidURL InvalidSchema MissingSchema UnsupportedProtocol UsageError BadParameter MethodNotAllowed =DataError =ProgrammingError =ValueError
  validation|required (?:property|field|parameter|argument)|is required\b|missing \d{0,3} ?required|\binvalid\b|old_string|malformed|syntax error
  |unexpected (?:keyword|parameter|argument)|must (?:be (?:an? |one |the |in |of |between |greater |less |at |after |before |different )|not be)
  |should (?:be|match)|is not (?:a |an |of )?(?:valid|one of|type)|un(?:supported|implemented|processable)|to replace|bad request|positional argument
  |not (?:yet )?(?:implemented|supported)|failed to find expected|expected .{1,60} got|unknown url type|out of range|no changes to make
  |cannot be (?:exchanged|modified|returned|cancell?ed|empty|null|parsed)
not_found | fix_arguments | 404 410 | NotFound DoesNotExist NoSuch =Gone =ENOENT =ENXIO =ENODEV =ESRCH =ENOTFOUND =EAI_NONAME =LookupError =ProcessLookupError
  not[ _]found|no such|does(?:n't| not) exist|could(?:n't| not) find|can(?:not|'t| not) find|enoent|not available|no longer exists
  |no (?:results?|match(?:es)?|page|record|file|module|entry)\b.{0,40} (?:found|named)|unknown (?:id|file|key|name|page)
server_error | | | InternalServer InternalError InternalFailure ServerError ResponseValidation ContentTypeError DecodingError =Internal =DataLoss
  internal (?:server )?error|server error|internal failure|unexpected error occurred|expecting value: line \d
  |unexpected (?:token .{1,20} (?:in|is not valid) |end of )json
exec_nonzero | fix_precondition | | =CalledProcessError =SystemExit
"""
"""
Of each kind what follows, the statuses of HTTP, parts of names (whole ones after `=`), and the words, in the order in which they are
asked. An unknown host is no lost connection; a refused connection did not happen; a lock of a database passes within a second.
"""
_OF_SHELLS: Final = r"""
timeout
  (?:command|operation|connection) timed out|deadline exceeded
connection
  connection reset|network is unreachable
unavailable
  connection refused|another git process|could not get lock|resource busy
auth
  bad credentials|authentication failed|could not read username|not logged in|denied \(publickey
permission
  permission denied|operation not permitted
not_found
  no such file or directory|command not found|not found|cannot find module|does not exist|could not resolve
"""
"""All that is believed of a command's output: a test report that says `timeout` did not time out."""
_NUMBERS: Final = """
-32700 validation -32600 validation -32602 validation -32601 tool_missing -32603 server_error -32000 connection -32001 timeout -32002 not_found -32042 auth
-32800 cancelled 08 connection 28 auth 42501 permission 42P01 not_found 22 validation 23 conflict 25006 permission 40001 unavailable 40P01 unavailable
40 conflict 42 validation 53 unavailable 55P03 unavailable 57014 cancelled 57P unavailable 58 server_error XX server_error
"""
"""Codes of JSON-RPC and of the SDKs of MCP; states of SQL and PostgreSQL, the first that one starts with."""
LOCKED: Final = pattern(
    r"(?i)(?:database|table)\b.{0,60} locked|sqlite_?(?:busy|locked)|deadlock|serializ|lock(?:ed by| wait| ?not ?avail)"
)
_LASTS: Final = pattern(
    r"(?i)certificate|self[- ]signed|already exists|unique constraint|duplicate (?:key|entry)|not empty"
    r"|(?:quota|limit)\b.{0,60}\b(?:per|a|each) (?:day|month)|(?:daily|monthly|per[- ]day) .{0,20}(?:quota|limit)"
)
"""Of kinds that may pass, these do not."""
_UNPAID: Final = pattern(
    r"(?i)insufficient[ _-]?(?:quota|funds|credits?|balance)|payment[ _-]required|billing[ _-]?(?:hard[ _-]?limit|details|not[ _-]active|account)"
    r"|(?:hard|spend(?:ing)?|usage|monthly|credit) limit (?:has been |was )?(?:reached|exceeded)|out of credits"
    r"|(?:credit|account) balance is (?:too low|insufficient|empty)|(?:exceeded|reached) your (?:current )?(?:quota|spend\w*|monthly \w+)"
)
_COMES_BACK: Final = pattern(r"(?i)\b(?:retry|try again|wait|per (?:second|minute|hour))\b")
TRACEBACK: Final = "Traceback (most recent call last)"
_EXIT: Final = pattern(
    r"(?i)exit ?(?:code|status):? [1-9]|process exited with code [1-9]|command failed with exit code|non-zero exit status"
)
_PHRASES: Final = r"(?:bad request|unauthori[sz]ed|forbidden|not found|too many requests|internal server error|bad gateway|service unavailable|gateway time-?out|conflict|gone|locked)"
_STATUS: Final = pattern(
    r"(?i)(?:\bhttp(?:/\d(?:\.\d)?)?(?:[ _](?:error|status))?(?:[ _]code)?|\bstatus(?:[ _]?code)?|\b(?:error|response)[ _]code)"
    r"""["']?(?: is| was| of)?[\s:=(!]{0,4}(?:status: )?["']?([45]\d\d)\b"""
    rf"|\b([45]\d\d)[ :-]{{1,3}}(?:\w{{1,12}} )?(?:(?:client|server) error|{_PHRASES})\b"
)
_CLASS: Final = pattern(r"\b([A-Z][A-Za-z]{2,60}(?:Error|Exception|Timeout))\b")
_RAISED: Final = pattern(
    r"(?m)^[ |]*[ \t][^\n]*\n[ |]{0,40}(?:[\w<>]{1,60}\.){0,8}([A-Za-z_]\w{1,60})(?::([^\n]*)|[ \t]*$)|^ *([A-Z]\w{2,60}) {2,80}Traceback"
)
_NAMES: Final = pattern(
    r"(?<=\w )[\"'`][^\"'`\s]{1,100}[\"'`]|(?<![\w:/.])[\w.~-]{0,80}(?:/[\w.~-]{1,80}){1,20}|\b[\w-]{1,80}\.[a-z]\w{0,4}\b(?!:)"
)
"""Names, paths and files in a text: `credentials.json was not found` speaks of no credentials."""


class Row(NamedTuple):
    kind: ErrorType
    follows: NextAction | None
    statuses: list[str]
    names: list[str]
    words: re.Pattern[str]


@lru_cache(maxsize=2)
def _rows(table: str = _TABLE) -> list[Row]:
    rows = []
    for text in re.split(r"\n(?=\w)", table.strip()):
        head, *words = text.replace("\n  | ", " ").split("\n  ")
        kind, follows, statuses, names = (*(part.strip() for part in head.split("|")), "", "", "")[:4]
        found = re.compile("".join(words) or r"(?!)")
        rows.append(Row(kind, follows or None, statuses.split(), names.split(), found))  # type: ignore[arg-type]
    return rows


@lru_cache(maxsize=32)
def follows(kind: ErrorType) -> NextAction | None:
    """
    Returns the step that follows a failure of *kind* that is not repeated; None if nothing is known.
    """
    return next((row.follows for row in _rows() if row.kind == kind and row.follows), None)


def kind_of_status(status: int) -> ErrorType | None:
    """
    Returns the kind of an HTTP status: 400 to 599, None outside.
    """
    other: ErrorType | None = "validation" if 400 <= status < 500 else "server_error" if 500 <= status < 600 else None
    return next((row.kind for row in _rows() if str(status) in row.statuses), other)


@lru_cache(maxsize=512)
def _named(name: str) -> ErrorType | None:
    whole = next((row.kind for row in _rows() if f"={name}" in row.names), None)
    if whole is None and (re.search("[_-]", name) or name.isupper() or name.islower()):
        name = "".join(part.capitalize() for part in re.split("[_-]", name))
    return whole or next(
        (row.kind for row in _rows() for part in row.names if part in name or part == f"={name}"), None
    )


def kind_of_name(name: str) -> ErrorType | None:
    """
    Returns the kind that a class name or a code stands for: `ReadTimeout`, `RESOURCE_EXHAUSTED`, `rate_limit_exceeded`, `ENOENT`.
    """
    return _named(name[:100])


def kind_of_errno(number: int) -> ErrorType | None:
    return _named(errno.errorcode.get(number, ""))


def kind_of_code(code: int | str) -> ErrorType | None:
    """
    Returns the kind of a code of JSON-RPC, of an HTTP status, or of a state of SQL (a text).
    """
    numbers = _NUMBERS.split()
    for number, kind in zip(numbers[::2], numbers[1::2], strict=True):
        if code.startswith(number) if isinstance(code, str) else str(code) == number:
            return kind  # type: ignore[return-value]
    return None if isinstance(code, str) else kind_of_status(code)


def status_in(text: str) -> int | None:
    """
    Returns the HTTP error status that a text names (`HTTP 404`, `status code: 503`, `429 Too Many Requests`).
    """
    found = _STATUS.search(ends_of(text))
    return int(found[1] or found[2]) if found else None


def kind_of_text(text: str) -> ErrorType | None:
    """
    Returns the kind of failure that *text* tells of, by its two ends; None if it tells of none.
    """
    ends = ends_of(text)
    traced = _traced(text[-16_384:]) if TRACEBACK in text else None
    status = status_in(ends)
    by_status = None if status is None else kind_of_status(status)
    if _EXIT.search(ends, 0, 300):
        # A bug in a command that is a Python program is still a command that failed.
        by_words = by_status or _worded(ends.lower(), _OF_SHELLS)
        return traced if traced not in (None, "code_error") else (None if traced else by_words) or "exec_nonzero"
    if traced is not None:
        return traced
    if unpaid(ends):
        return "permission"
    found = _CLASS.search(ends, 0, 200)
    named = by_status or (kind_of_name(found[1]) if found else None)
    return named or _worded(_NAMES.sub("~", ends.lower().replace("\u2019", "'")), _TABLE)


def unpaid(text: str) -> bool:
    """
    Returns whether *text* says that something has to be paid first, which no waiting does.
    """
    return _UNPAID.search(text) is not None and _COMES_BACK.search(text) is None


def passes(kind: ErrorType, text: str) -> bool | None:
    """
    Returns whether a failure passes by itself, where its kind alone does not say it: a conflict does; a failed certificate, a daily
    quota and a name that is taken do not.
    """
    if kind not in ("conflict", "connection", "rate_limit"):
        return None
    return False if _LASTS.search(ends_of(text)) else True if kind == "conflict" else None


def ends_of(text: str) -> str:
    """
    Returns the two ends of a long text: causes stand first, verdicts last.
    """
    return text if len(text) <= 3072 else f"{text[:2048]}\n{text[-1024:]}"


def _worded(text: str, table: str) -> ErrorType | None:
    return next((row.kind for row in _rows(table) if row.words.search(text)), None)


def _traced(text: str) -> ErrorType:
    """
    Returns the kind by the last exception that says something: a wrapper does not, nor one that was cancelled beside another.
    """
    said: ErrorType = "code_error"
    for name, message, heading in reversed(_RAISED.findall(text if "\n" in text else text.replace("\\n", "\n"))):
        # Drivers of databases have one name for all that goes wrong there.
        kind = kind_of_name(name or heading) or ("unavailable" if LOCKED.search(message) else None)
        if kind is not None and kind != "cancelled":
            return "code_error" if kind == "validation" else kind
        said = kind or said
    return said
