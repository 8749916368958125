"""
The kind of error that a name or a number stands for: exception classes, service codes, HTTP, gRPC, JSON-RPC and SQL
states.

Nothing is imported for it: clients are known by the names and numbers that they document. Class names are matched by
their parts (`ReadTimeout`, `APITimeoutError`), so that an unknown client is understood as well.
"""

import errno

from typing import Final

from guardrails.core.text.short_keys import cached_if_short
from guardrails.core.values.types import ErrorType


_STATUS: Final[dict[int, ErrorType]] = {
    401: "auth",
    402: "permission",
    403: "permission",
    404: "not_found",
    407: "auth",
    408: "timeout",
    409: "conflict",
    410: "not_found",
    412: "precondition",
    413: "too_large",
    414: "too_large",
    423: "conflict",
    424: "precondition",
    425: "unavailable",
    428: "precondition",
    429: "rate_limit",
    431: "too_large",
    440: "auth",
    444: "connection",
    451: "permission",
    499: "cancelled",
    502: "unavailable",
    503: "unavailable",
    504: "timeout",
    507: "precondition",
    511: "auth",
    521: "unavailable",
    522: "timeout",
    523: "unavailable",
    524: "timeout",
    525: "connection",
    526: "connection",
    529: "unavailable",
    530: "unavailable",
    598: "timeout",
    599: "timeout",
    **dict.fromkeys((501, 505, 506, 508, 510), "validation"),
}
"""RFC 9110, RFC 6585, and what nginx (4xx), Cloudflare (52x, 530) and Anthropic (529, overloaded) add."""

_JSON_RPC: Final[dict[int, ErrorType]] = {
    -32700: "validation",
    -32600: "validation",
    -32601: "tool_missing",
    -32602: "validation",
    -32603: "server_error",
    -32000: "connection",
    -32001: "timeout",
    -32002: "not_found",
    -32042: "auth",
    -32800: "cancelled",
}
"""JSON-RPC 2.0; of the server's own range what the MCP SDKs use."""

_SQL_STATE: Final[tuple[tuple[str, ErrorType], ...]] = (
    ("08", "connection"),
    ("28", "auth"),
    ("42501", "permission"),
    ("42P01", "not_found"),
    ("22", "validation"),
    ("23", "conflict"),
    ("25006", "permission"),
    ("40001", "unavailable"),
    ("40P01", "unavailable"),
    ("40", "conflict"),
    ("42", "validation"),
    ("53", "unavailable"),
    ("55P03", "unavailable"),
    ("57014", "cancelled"),
    ("57P", "unavailable"),
    ("58", "server_error"),
    ("XX", "server_error"),
)
"""Classes and codes of ISO SQL and PostgreSQL; the first that a code starts with."""

_ERRNO: Final[dict[str, ErrorType]] = {
    **dict.fromkeys(("ENOENT", "ENXIO", "ENODEV", "ESRCH"), "not_found"),
    **dict.fromkeys(("EACCES", "EPERM", "EROFS"), "permission"),
    **dict.fromkeys(("EISDIR", "ENOTDIR", "ENAMETOOLONG", "ELOOP"), "invalid_path"),
    **dict.fromkeys(("EEXIST", "EBUSY", "ETXTBSY", "EAGAIN", "ENOTEMPTY"), "conflict"),
    **dict.fromkeys(("EFBIG", "E2BIG", "ENOMEM", "EMSGSIZE"), "too_large"),
    **dict.fromkeys(("ENOSPC", "EDQUOT"), "precondition"),
    **dict.fromkeys(("EMFILE", "ENFILE", "ENOBUFS"), "unavailable"),
    **dict.fromkeys(("ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "EHOSTUNREACH", "EHOSTDOWN"), "connection"),
    **dict.fromkeys(("ENETUNREACH", "ENETDOWN", "ENOTFOUND", "EAI_AGAIN", "EAI_NONAME"), "connection"),
    "ETIMEDOUT": "timeout",
    "ECANCELED": "cancelled",
}
"""POSIX; ENOTFOUND and EAI_* are what Node.js calls a name that does not resolve."""

# A ValueError says that an argument was wrong, the other programming errors that the tool is.
_BUILTIN: Final[dict[str, ErrorType]] = {
    **dict.fromkeys(
        ("ArithmeticError", "AssertionError", "AttributeError", "BufferError", "ImportError"), "code_error"
    ),
    **dict.fromkeys(("IndexError", "KeyError", "NameError", "NotImplementedError", "RecursionError"), "code_error"),
    **dict.fromkeys(("ReferenceError", "StopAsyncIteration", "StopIteration", "SyntaxError"), "code_error"),
    **dict.fromkeys(("SystemError", "TypeError", "ZeroDivisionError", "OverflowError"), "code_error"),
    **dict.fromkeys(("ModuleNotFoundError", "LookupError", "FileNotFoundError", "ProcessLookupError"), "not_found"),
    **dict.fromkeys(("NotADirectoryError", "IsADirectoryError"), "invalid_path"),
    **dict.fromkeys(("FileExistsError", "BlockingIOError"), "conflict"),
    **dict.fromkeys(("KeyboardInterrupt", "GeneratorExit", "InterruptedError"), "cancelled"),
    **dict.fromkeys(("ConnectionError", "EOFError"), "connection"),
    "MemoryError": "too_large",
    "PermissionError": "permission",
    "SystemExit": "exec_nonzero",
    "TimeoutError": "timeout",
    "ValueError": "validation",
}

_EXACT: Final[dict[str, ErrorType]] = {
    **dict.fromkeys(("ReadError", "WriteError", "CloseError", "ChunkedEncodingError", "BadStatusLine"), "connection"),
    **dict.fromkeys(("IncompleteRead", "IncompleteReadError", "ClientPayloadError", "AutoReconnect"), "connection"),
    **dict.fromkeys(("ClosedResourceError", "BrokenResourceError", "EndOfStream"), "connection"),
    **dict.fromkeys(("APIResponseValidationError", "ResponseValidationError", "ContentTypeError"), "server_error"),
    **dict.fromkeys(("DecodingError", "ContentDecodingError", "Internal", "DataLoss"), "server_error"),
    **dict.fromkeys(("InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException"), "auth"),
    **dict.fromkeys(("InvalidAccessKeyId", "InvalidApiKey", "AuthFailure", "RefreshError"), "auth"),
    **dict.fromkeys(("InsufficientQuota", "BillingHardLimitReached", "BillingNotActive"), "permission"),
    **dict.fromkeys(("SqliteBusy", "SqliteLocked", "LockNotAvailable", "TransactionRollbackError"), "unavailable"),
    **dict.fromkeys(("RequestLimitExceeded", "LimitExceededException", "PriorRequestNotComplete"), "rate_limit"),
    **dict.fromkeys(("ProvisionedThroughputExceededException", "RetryAfter", "FloodWait"), "rate_limit"),
    **dict.fromkeys(("ConditionalCheckFailedException", "StaleDataError"), "precondition"),
    **dict.fromkeys(("Aborted", "LockError"), "conflict"),
    **dict.fromkeys(("InvalidURL", "InvalidSchema", "MissingSchema", "UnsupportedProtocol"), "validation"),
    **dict.fromkeys(("DataError", "ProgrammingError", "UsageError", "BadParameter"), "validation"),
    "MethodNotAllowed": "validation",
    "CalledProcessError": "exec_nonzero",
    "Gone": "not_found",
    "Unimplemented": "tool_missing",
}

# Tried in this order: `ConnectTimeout` is a timeout, `ToolNotFound` is no ordinary not_found.
_PARTS: Final[tuple[tuple[ErrorType, tuple[str, ...]], ...]] = (
    ("timeout", ("Timeout", "TimedOut", "DeadlineExceeded")),
    ("rate_limit", ("RateLimit", "Ratelimit", "TooManyRequests", "Throttl", "ResourceExhausted", "SlowDown")),
    (
        "auth",
        (
            "Authentication",
            "Unauthenticated",
            "Unauthorized",
            "Credentials",
            "InvalidToken",
            "ExpiredToken",
            "AuthError",
        ),
    ),
    ("auth", ("TokenExpired", "LoginRequired")),
    ("permission", ("PermissionDenied", "PermissionError", "Forbidden", "AccessDenied", "NotAuthorized", "NotAllowed")),
    ("tool_missing", ("ToolNotFound", "UnknownTool", "NoSuchTool", "MethodNotFound")),
    ("not_found", ("NotFound", "DoesNotExist", "NoSuch")),
    ("precondition", ("Precondition",)),
    (
        "conflict",
        ("Conflict", "AlreadyExists", "IntegrityError", "Duplicate", "Locked", "InUse"),
    ),
    ("too_large", ("TooLarge", "TooLong", "ContextLength")),
    (
        "validation",
        ("Validation", "InvalidArgument", "InvalidParam", "InvalidRequest", "InvalidInput", "Unprocessable"),
    ),
    ("validation", ("BadRequest", "OutOfRange")),
    ("cancelled", ("Cancel", "UserRejected", "Aborted")),
    ("unavailable", ("Unavailable", "Overloaded", "BadGateway", "Circuit", "BrokenExecutor", "BrokenProcessPool")),
    ("unavailable", ("Deadlock", "SerializationFailure", "CouldNotSerialize")),
    ("server_error", ("InternalServer", "InternalError", "InternalFailure", "ServerError")),
    ("connection", ("Connect", "Disconnected", "Network", "gaierror", "herror", "SSL", "Certificate", "ProtocolError")),
    ("connection", ("ProxyError", "NameResolution", "Unreachable", "TransportError")),
)


def error_type_of_status(status: int) -> ErrorType | None:
    """
    Returns the kind of an HTTP status: 400 to 599, None outside.

    Client errors that are not listed are `validation`, server errors `server_error`.
    """
    if 400 <= status < 500:
        return _STATUS.get(status, "validation")
    if 500 <= status < 600:
        return _STATUS.get(status, "server_error")
    return None


def error_type_of_errno(number: int) -> ErrorType | None:
    """
    Returns the kind of a POSIX error number.
    """
    return _ERRNO.get(errno.errorcode.get(number, ""))


def error_type_of_json_rpc(code: int) -> ErrorType | None:
    """
    Returns the kind of a JSON-RPC error code; HTTP statuses are used in its place by some MCP servers.
    """
    return _JSON_RPC.get(code) or error_type_of_status(code)


def error_type_of_sql_state(state: str) -> ErrorType | None:
    """
    Returns the kind of a five-character SQLSTATE.
    """
    return next((kind for prefix, kind in _SQL_STATE if state.startswith(prefix)), None)


def error_type_of_builtin(name: str) -> ErrorType | None:
    """
    Returns the kind of a built-in exception; None for those that say nothing (`Exception`, `RuntimeError`, `OSError`).
    """
    return _BUILTIN.get(name)


@cached_if_short(512)
def error_type_of_name(name: str) -> ErrorType | None:
    """
    Returns the kind that a class name or a code stands for, such as `ReadTimeout`, `ThrottlingException`,
    `RESOURCE_EXHAUSTED`, `rate_limit_exceeded`, `ENOENT`. Returns None if it says nothing.
    """
    if (posix := _ERRNO.get(name)) is not None:
        return posix
    if "_" in name or name.isupper():
        name = "".join(part.capitalize() for part in name.split("_"))

    if (exact := _EXACT.get(name)) is not None:
        return exact
    return next((kind for kind, parts in _PARTS if any(part in name for part in parts)), None)
