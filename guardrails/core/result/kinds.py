"""
The kinds of failure, as one table: the numbers, names and words that stand for each.

Clients are known by the numbers and names that they document, so nothing is imported for them. Of a class name its parts count
(`APITimeoutError`). A text is asked for an exit code, a traceback, an HTTP status and the name of a class before its words count.
"""

import re

from typing import Any, Final

from guardrails.core.values.caches import cached_if_short
from guardrails.core.values.names import TOKEN
from guardrails.core.values.types import ErrorType


_TABLE: Final = r"""
permission |  |  | (?s)^(?!.*\b(?:retry|try again|wait|per (?:second|minute|hour))\b).*?(?:insufficient[ _-]?(?:quota|funds|credits?|balance)|payment[ _-]required|billing[ _-]?(?:hard[ _-]?limit|details|not[ _-]active|account)|(?:hard|spend(?:ing)?|usage|monthly|credit) limit (?:has been |was )?(?:reached|exceeded)|out of credits|balance is (?:too low|insufficient|empty)|(?:exceeded|reached) your (?:current )?(?:quota|spend\w*|monthly \w+))
unavailable |  |  | (?:database|table)(?: \w{1,40}){0,2} is locked|sqlite[ _](?:busy|locked)|deadlock|could ?not serialize|serialization failure|could not obtain lock|lock (?:wait timeout|not available)|lock(?:ed)? by another
not_found |  |  | could not resolve|name or service not known|enotfound|nodename nor servname|no such host|name does not resolve|unknown host
unavailable |  |  | connection refused|econnrefused|actively refused
cancelled | 499 -32800 | Aborted AbortError ECANCELED KeyboardInterrupt GeneratorExit InterruptedError | doesn't want to proceed|(?:rejected|interrupted) by (?:the )?user|user (?:rejected|declined|cancell?ed)|sibling tool call|abort ?error|cancell?ed ?error|(?:request|operation|call|task|query|execution) (?:was |has been )?(?:cancell?ed|aborted)
tool_missing | -32601 | Unimplemented | (?:unknown|unrecogni[sz]ed|no such) (?:tool|function|skill|method|agent)\b|(?:^|: )method not found|-32601|\b(?:tool|skill|agent type|server) (?:~ )?(?:was |is |does )?not (?:found|exist|defined|available|registered)
precondition | 412 424 428 507 | ConditionalCheckFailedException StaleDataError ENOSPC EDQUOT | has not been read|has been (?:unexpectedly )?(?:modified|changed)|(?:modified|changed|changed on disk) since|precondition|not (?:yet )?initiali[sz]ed|no space left|\bplease (?:use|call|run|create|open|load|read|generate|select) .{1,80} first\b|must be .{1,60} first\b|\bstale\b
code_error |  | ArithmeticError AssertionError AttributeError BufferError ImportError IndexError KeyError NameError TypeError NotImplementedError RecursionError ReferenceError StopAsyncIteration StopIteration SyntaxError SystemError ZeroDivisionError OverflowError | (?:syntax|indentation|tab|name|unboundlocal)error:\s
too_large | 413 414 431 | MemoryError EFBIG E2BIG ENOMEM EMSGSIZE | exceeds (?:the )?max|too (?:large|long)\b|maximum context|context[ _]length|payload too
rate_limit | 429 | RetryAfter FloodWait PriorRequestNotComplete | rate[ _-]?limit|too many requests|quota (?:exceeded|exhausted)|exceeded .{0,60}quota|throttl|slow down|too (?:quickly|frequently|often)|resource exhausted|(?:request|throughput) ?limit exceeded|throughput exceeded
timeout | 408 504 522 524 598 599 -32001 | ETIMEDOUT | timed[ -]?out|deadline[ _]exceeded|took too long|did not respond|(?<!invalid )\btime-?out\b(?=\W*$|[.!)\]}"':,]\W|\n| (?:error|exceed|expired|reached|occur|after|while|wait|of \d|\d|for|when|on|to))
auth | 401 407 440 511 -32042 | AuthError AuthFailure InvalidClientTokenId SignatureDoesNotMatch UnrecognizedClientException InvalidAccessKeyId RefreshError | unauthenticated|unauthori[sz]ed|not (?:authenticated|logged in)|authentication ?(?:failed|error|required|credentials)|request_denied|log ?in required|could not read username|denied \(publickey|bad credentials|no ?credentials|(?:invalid|incorrect|missing|expired|bad|wrong|no) (?:api[ _-]?key|(?:access |auth )?token\b(?! at)|credentials?\b|password)|api[ _-]?key (?:is |was )?(?:missing|invalid|required|not)|token (?:has |is )?(?:expired|invalid)
permission | 402 403 451 | PermissionError EACCES EPERM EROFS | permission denied|access (?:is |was )?denied|forbidden|(?<!method )not (?:allowed|permitted|authori[sz]ed)|insufficient (?:permission|scope|privilege|quota)|not subscribed|disabled for your subscription|outside (?:of )?(?:the )?(?:allowed|workspace)
connection | 444 525 526 -32000 | ReadError WriteError CloseError ChunkedEncodingError BadStatusLine IncompleteRead IncompleteReadError ClientPayloadError AutoReconnect EndOfStream BrokenPipeError ClosedResourceError BrokenResourceError EAI_AGAIN ECONNRESET ECONNABORTED EPIPE EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN | connection (?:error|reset|closed|aborted|failed|issue|lost)|(?:could not|failed to|unable to) connect|socket hang up|econn|eai_again|temporary failure|network (?:error|is unreachable)|max retries exceeded|disconnected|fetch failed|\bssl(?: ?error|: )|certificate|closed the connection|(?:connect|connector|protocol|proxy|transport) error|unreachable
unavailable | 425 502 503 521 523 529 530 | EMFILE ENFILE ENOBUFS ECONNREFUSED ConnectionRefusedError TransactionRollbackError | (?:temporarily|currently|service(?: is)?) unavailable|^unavailable|bad gateway|overloaded|try again later|at capacity|\bcircuit|broken (?:executor|process)
conflict | 409 423 | FileExistsError BlockingIOError EEXIST EBUSY ETXTBSY EAGAIN ENOTEMPTY Locked LockError | already exists|(?:^|[\s:(])conflict\b(?![-/_.])|unique constraint|is being used by another|resource (?:is )?(?:busy|locked|in use)|another git process|integrity error|violation|duplicate (?:key|entry)
invalid_path |  | EISDIR ENOTDIR ENAMETOOLONG ELOOP NotADirectoryError IsADirectoryError | (?:is|not|on) a directory\b|eisdir|enotdir|invalid path|path traversal
validation | 501 505 506 508 510 -32700 -32600 -32602 | MissingSchema UnsupportedProtocol UsageError BadParameter MethodNotAllowed DataError ProgrammingError ValueError | \bfile://|missing an? .{0,20}(?:protocol|scheme)|validation|required (?:property|field|parameter|argument)|is required\b|missing \d{0,3} ?required|\binvalid\b|old_string|malformed|syntax error|unexpected (?:keyword|parameter|argument)|should (?:be|match)|is not (?:a |an |of )?(?:valid|one of|type)|must (?:be (?:an? |one |the |in |of |between |greater |less |at |after |before |different )|not be)|un(?:supported|implemented|processable)|to replace|bad request|positional argument|not (?:yet )?(?:implemented|supported)|failed to find expected|expected .{1,60} got|unknown url type|out of range|no changes to make|cannot be (?:exchanged|modified|returned|cancell?ed|empty|null|parsed)
not_found | 404 410 -32002 | Gone ENOENT ENXIO ENODEV ESRCH ENOTFOUND EAI_NONAME LookupError ProcessLookupError | not[ _]found|no such|does(?:n't| not) exist|could(?:n't| not) find|can(?:not|'t| not) find|enoent|not available|no longer exists|no (?:results?|match(?:es)?|page|record|file|module|entry)\b.{0,40} (?:found|named)|unknown (?:id|file|key|name|page)
server_error | -32603 | ContentTypeError DecodingError ContentDecodingError Internal INTERNAL DataLoss APIResponseValidationError ResponseValidationError | internal (?:server )?(?:error|failure)|server error|unexpected error occurred|expecting value: line \d|unexpected (?:token .{1,20} (?:in|is not valid) |end of )json
exec_nonzero |  | CalledProcessError SystemExit | exit ?(?:code|status):? [1-9]|process exited with code [1-9]|command failed with exit code|non-zero exit status
"""
"""
Of each kind the statuses of HTTP and codes of JSON-RPC (also of the SDKs of MCP), names of classes and codes, and the words, in the order in
which they are asked: of a text, and of any other name, in which `APITimeoutError` is `api timeout error`. First stands what has to be paid,
which no waiting does, and a lock that another work holds. An unknown host is no lost connection; a refused connection did not happen.
"""
_ROWS: Final[list[Any]] = [row.split(" | ", 3) for row in _TABLE.strip().split("\n")]
_UNPAID, _LOCKED, *_, _EXIT = (row[3] for row in _ROWS)
_LASTS: Final = r"""(?ix)certificate|self[-\ ]signed|already\ exists|constraint|violation|duplicate\ (?:key|entry)|not\ empty
|(?:quota|limit)\b.{0,60}\b(?:per|a|each)\ (?:day|month)|(?:daily|monthly|per[-\ ]day)\ .{0,20}(?:quota|limit)"""
"""Of kinds that may pass, these do not."""
REASONS: Final = r"""[\ :-]{1,3}(?:\w{1,12}\ )?(?:(?:client|server)\ error|bad\ request|unauthori[sz]ed|forbidden|not\ found|too\ many\ requests|bad\ gateway
|service\ unavailable|time-?out|conflict|gone|locked)\b"""
"""Behind an HTTP status."""
_STATUS: Final = rf"""(?ix)(?:\bhttp(?:/\d(?:\.\d)?)?(?:[\ _](?:error|status))?(?:[\ _]code)?|\bstatus(?:[\ _]?code)?|\b(?:error|response)[\ _]code)
["']?(?:\ is|\ was|\ of)?[\s:=(!]{{0,4}}(?:status:\ )?["']?([45]\d\d)\b|\b([45]\d\d){REASONS}"""
_RAISED: Final = r"""(?mx)(?:^[\ |]{0,40}[\ \t][^\n]*+\n[\ |]{0,40}(?:\w{1,60}\.){0,8}|^\ {0,40}(?=\w{1,60}\ {2,80}Traceback))([A-Za-z_]\w{1,60})
(?::([^\n]*)|[\ \t]*$|\ {2,80}(?=Traceback))"""
_NAMES: Final = r"(?<=\w )[\"'`][^\"'`\s]{1,100}[\"'`]|(?<![\w:/.~-])[\w.~-]{0,80}(?:/[\w.~-]{1,80}){1,20}|\b[\w-]{1,80}\.[a-z]\w{0,4}\b"
"""Names, paths and files in a text: `credentials.json was not found` speaks of no credentials."""


@cached_if_short(512, 100)
def kind_of(name: Any) -> ErrorType | None:
    """
    Returns the kind that a *name* stands for: of a class or a code (`ReadTimeout`, `RESOURCE_EXHAUSTED`, `ENOENT`), or a number, of HTTP or
    JSON-RPC. Raises TypeError for what has no hash.
    """
    if type(name) is int and -33_000 < name < 600:
        other: Any = "validation" if 400 <= name < 500 else "server_error" if name >= 500 else None
        return next((row[0] for row in _ROWS if str(name) in row[1].split()), other)
    if not isinstance(name, str) or not 0 < len(name) <= 100 or " " in name:
        return None
    named = next((row[0] for row in _ROWS if name in row[2].split() or name == row[0]), None)
    return named or _worded(" ".join(TOKEN.findall(name)).lower())


def _worded(text: str) -> ErrorType | None:
    return next((row[0] for row in _ROWS if re.search(row[3], text)), None)


def status_in(text: str) -> int | None:
    """
    Returns the HTTP error status that a text names (`HTTP 404`, `status code: 503`, `429 Too Many Requests`).
    """
    match = re.search(_STATUS, ends_of(text))
    return int(match[1] or match[2]) if match else None


def kind_of_text(text: str, status: int | None = None) -> ErrorType | None:
    """
    Returns the kind of failure that *text* tells of, by its two ends, beside an HTTP *status*; None if it tells of none.
    """
    from guardrails.core.text.redaction import TRACEBACK

    ends = ends_of(text)
    known = _traced(text[-16_384:]) if status is None and TRACEBACK in text else None
    unpaid, status = re.search(_UNPAID, ends.lower()), status_in(ends) if status is None else status
    known = known or (None if status is None else "permission" if unpaid else kind_of(status))
    if re.search(_EXIT, ends[:300].lower()):
        # A bug in a command that is a Python program is still a command that failed.
        return "exec_nonzero" if known in (None, "code_error") else known
    if known is None and not unpaid:
        known = kind_of(re.split("[:(]", ends, maxsplit=1)[0].rpartition(".")[2])
    return known or _worded(re.sub(_NAMES, "~", ends.lower().replace("\u2019", "'")))


def passing(kind: ErrorType, text: str) -> tuple[bool | None, int | None]:
    """
    Returns whether a failure passes by itself, where its kind alone does not say it, and the wait that is known of its cause: a conflict
    passes; a failed certificate, a daily quota and a name that is taken do not; a lock of a database passes within a second.
    """
    ends = ends_of(text).lower()
    if kind not in ("conflict", "connection", "rate_limit"):
        return None, 250 if kind == "unavailable" and re.search(_LOCKED, ends) else None
    return False if re.search(_LASTS, ends) else True if kind == "conflict" else None, None


def ends_of(text: str) -> str:
    """
    Returns the two ends of a long text: causes stand first, verdicts last.
    """
    return text if len(text) <= 3072 else f"{text[:2048]}\n{text[-1024:]}"


def _traced(text: str) -> ErrorType:
    """
    Returns the kind by the last exception that says something: a wrapper does not, nor one that was cancelled beside another.
    """
    kinds: list[Any] = ["code_error"]
    for name, message in re.findall(_RAISED, text if "\n" in text else text.replace("\\n", "\n")):
        # Drivers of databases have one name for all that goes wrong there.
        kind = kind_of(name) or ("unavailable" if re.search(_LOCKED, message.lower()) else None)
        kinds += ["code_error" if kind == "validation" else kind] if kind else []
    return next((kind for kind in reversed(kinds[1:]) if kind != "cancelled"), kinds[-1])
