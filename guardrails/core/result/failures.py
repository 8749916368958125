"""
Failures that hide in results: by what is declared of the tool, else by structure, in every carrier. In doubt a result is a success.

An object fails by a sign (`isError`, `ok` or `success` false, an `error`, a status of failure, an exit code) with nothing beside it that
says something else. A text fails by its first line, if it is the tool's own.
"""

import re

from collections.abc import Mapping, Sequence
from functools import lru_cache
from reprlib import Repr
from typing import Any, Final, Literal, NamedTuple, Protocol

from guardrails.core.values.late_pattern import pattern
from guardrails.core.values.tool_name import TOKEN, own_name
from guardrails.core.values.types import ERROR_TYPES, ErrorType

from .content import at, data_in, mcp_of


Words = Literal["own", "program", "shown"]
"""Whose words a text is: the tool's; a program's, which ends in a traceback or an exit code if it fails; others', that it shows."""

FAILED: Final = frozenset({"error", "failed", "failure", "fail", "fatal", "denied", "unauthorized", "timeout"})
_PARSED: Final = 8192
"""Characters of a JSON text; a longer one brings something."""
_STATUS: Final = ("status", "status_code", "statusCode", "http_status", "httpStatus", "code")
_FALSE: Final = ("ok", "success")
_TRUE: Final = ("isError", "is_error")
_EXITS: Final = ("exit_code", "exitCode", "returncode", "return_code", "exit_status")
_SIGNS: Final = frozenset({"error", "errors", "content", "structuredContent", *_STATUS, *_FALSE, *_TRUE, *_EXITS})
_KINDS: Final = ("error_type", "errorType", "error.type", "error.code", "error_code", "code", "type", "name", "error")
_MESSAGES: Final = (
    "error.message",
    "error_message",
    "error",
    "message",
    "detail",
    "errors",
    "reason",
    "msg",
    "stderr",
    "title",
    "output",
    "stdout",
)
_NO_ERROR: Final = frozenset({"", "none", "null", "nil", "no", "false", "0", "ok", "success", "n/a", "no error"})
_ABOUT: Final = pattern(
    r"err|message|msg|details?|reason|cause|code|type|kind|title|description|hints?|help|suggestions?|trace|traceback|stack|exception|warnings?"
    r"|timestamp|time|at|date|elapsed|duration|took|instance|ur[li]|href|path|docs|documentation|retry|retryable|retries|attempts?|status|state|ok|success"
    r"|failed|limit|remaining|reset|quota|category|severity|level|domain|fields?|params?|parameter|is error|version|extensions|locations|jsonrpc"
    r"|errors?|(?:err|error|exception|retry|request|response|status|http|documentation|trace|max|exit|return) .*"
    r"|.* (?:errors?|message|msg|details?|reason|trace|traceback|exception|timestamp|ms)"
)
"""Names of members that say more of a failure, or of the call: their words in small letters."""
_OUTPUTS: Final = pattern(
    "stdout|stderr|output|command|cmd|cwd|pid|signal|stdin|body|headers|text|content|html|response|returncode"
)
"""Members of a command's end, or of an HTTP response, beside its status."""
_FINDING: Final = pattern(r"(?i)line \d|\S+:\d|\{.*'(?:line|row|column|file|severity|rule)'")
"""An error at a place of what was looked at is what was asked for."""
_LINE: Final = pattern(
    r"(?i)\W{0,4}(?:(?:(?:fatal|unexpected|unknown|tool|api|http|network|database|system|request|execution|connection|runtime|syntax|internal"
    r"|internal server|(?:input |output )?validation) )?error(?: \w{3,20}ing\b[^\n:]{0,100}| ?[(\[][^\n:]{1,40}[)\]])?: *(?=\S)"
    r"|(?:[a-z_]\w{0,60}\.){0,6}[a-z]\w{0,60}(?-i:Error|Exception): *(?=\S))"
    r"(?![-+]?\d*\.\d|(?![45]\d\d$)[-+\d,%\ ]{0,40}$|(?:none|null|nil|no|n/a)\b[. ]*$)"
    r"|http(?:/\d(?:\.\d)?)?[ :]{1,2}(?:error:? ?|status:? ?)?[45]\d\d\b|[45]\d\d[ :-]{1,3}(?:page |resource )?(?:bad request|unauthorized|forbidden"
    r"|not found|conflict|too many requests|internal server error|bad gateway|service unavailable|(?:gateway|request) time-?out)\b"
)
_END: Final = pattern(
    r"(?i)(?:process |command )?(?:exited with |failed with )?exit ?(?:code|status)[:= ]{0,2} ?[1-9]\d{0,2}\b|process exited with code [1-9]"
    r"|(?:-{20,100}\s{1,3}[A-Z]\w{2,60} {2,80})?Traceback \(most recent call last\)"
)
_MAY: Final = pattern(r"(?i)\s*[{`\"]|[\s\S]{0,300}?(?:error|exception|traceback|exit ?[cs])|\W*(?:[45]\d\d|http)")
_SHOWS: Final = pattern(
    "(?i)read|cat|grep|glob|fetch|logs?|tail|head|view|open|load|browse|scrape|crawl|download|print|dump|display|transcript|(?:file|content|page|document"
    "|source|e?mail|comment)s?|inbox"
)
_WRITES: Final = pattern("(?i)create|add|insert|write|put|set|save|update|edit|delete|remove|move|upload|send|append")
_RUNS: Final = pattern(
    "(?i)bash|shell|sh|zsh|cmd|exec|terminal|console|powershell|pwsh|i?python|node|code|interpreter|repl|jupyter"
)


class Sign(NamedTuple):
    """
    A sign of a failure: the kind and the status that it names, and itself in words.
    """

    kind: ErrorType | None
    status: int | None
    words: str


class Rules(Protocol):
    """
    What is declared of the failures of a tool.
    """

    message_field: str | None
    retry_after_field: str | None

    def sign(self, views: Sequence[Any], text: str | None) -> Sign | None: ...


class Failure(NamedTuple):
    """
    A result that is a failure.
    """

    kind: ErrorType
    message: str
    """The failure's words, unredacted."""
    whole: bool
    """The message is all there is in the result."""
    status: int | None = None
    wait_ms: int | None = None
    retryable: bool | None = None
    """This and the next are claims of the tool."""
    retries: int | None = None


@lru_cache(maxsize=1024)
def speaker(tool: str) -> Words:
    """
    Returns whose words a text of *tool* is, by its name.
    """
    words = TOKEN.findall(own_name(tool))
    shows = any(map(_SHOWS.fullmatch, words)) and not any(map(_WRITES.fullmatch, words))
    return "program" if any(map(_RUNS.fullmatch, words)) else "shown" if shows else "own"


def may_fail(value: Any) -> bool:
    """
    Returns whether *value* is worth a closer look, found out at little cost.
    """
    kind = type(value)
    if kind is dict:
        return len(value) == 1 or not value.keys().isdisjoint(_SIGNS)
    if kind is str:
        return _MAY.match(value) is not None
    return (
        type(value[0]) is dict and "text" in value[0]
        if kind is list and value
        else kind not in (list, tuple, int, float, bool, type(None))
    )


def failure_in(
    value: Any,
    content: Any,
    rules: Rules | None = None,
    words: Words = "own",
    given: frozenset[str] = frozenset(),
    now_ms: int | None = None,
) -> Failure | None:
    """
    Returns the failure that *value* with this *content* is: by MCP's `isError: true`, by what is declared, or by structure.
    """
    found = mcp_of(value) if isinstance(value, Mapping) or not isinstance(value, str | list | tuple) else None
    flagged = found is not None and found.failed
    text = (
        value
        if isinstance(value, str)
        else "\n".join(found.texts)
        if found is not None and found.texts
        else content
        if isinstance(content, str)
        else None
    )
    sign = None
    if rules is not None:
        sign = rules.sign((content, value), text)
    elif not flagged and not (words == "shown" and text is not None):
        # What a reader of files shows is others' words, whatever it holds.
        sign = _of_text(content, words, given) if isinstance(content, str) else _of_object(content, given)
    if sign is None and not flagged:
        return None
    return _failure(
        sign or Sign(None, None, "the tool reported an error and said nothing of it"),
        content,
        text,
        rules,
        flagged=flagged,
        now_ms=now_ms,
    )


def _failure(
    sign: Sign, view: Any, text: str | None, rules: Rules | None, *, flagged: bool, now_ms: int | None
) -> Failure:
    from .kinds import kind_of_code, kind_of_name, kind_of_status, kind_of_text, status_in, unpaid
    from .waits import wait_in_fields, wait_in_text, wait_ms

    said = (at(view, path) for path in ((rules.message_field,) if rules and rules.message_field else _MESSAGES))
    told = next(
        (
            one if isinstance(one, str) else short(one)
            for one in said
            if isinstance(one, str | list | dict) and one and str(one).strip()
        ),
        "",
    )
    message = (text if flagged and isinstance(view, str) else told) or text or sign.words
    code = next(
        (
            int(number)
            for path in ("error.code", "error.status", "code")
            if (number := number_of(at(view, path))) is not None
        ),
        0,
    )
    status = sign.status or (code if 400 <= code < 600 else None) or status_in(message)
    names = (
        name for path in _KINDS if isinstance(name := at(view, path), str) and 0 < len(name) <= 100 and " " not in name
    )
    kind = sign.kind or next(
        (kind for name in names if (kind := name if name in ERROR_TYPES else kind_of_name(name))), None
    )
    kind = (
        kind
        or (kind_of_code(code) if code < 0 else None)
        or (kind_of_status(status) if status is not None and not unpaid(message) else None)
    )
    wait = wait_ms(value_at(view, rules.retry_after_field), now_ms) if rules and rules.retry_after_field else None
    for place in (view, at(view, "error"), at(view, "headers")):
        if wait is None and isinstance(place, Mapping):
            flat = {re.sub(r"(?<=[a-z])(?=[A-Z])|_", "-", str(name)).lower(): one for name, one in place.items()}
            wait = wait_in_fields(flat, status, now_ms)
    retryable, retries = at(view, "retryable"), at(view, "max_retries_remaining")
    return Failure(
        kind or kind_of_text(f"{sign.words}\n{message}" if sign.words.startswith("exit") else message) or "other",
        message,
        message == text,
        status,
        wait_in_text(message, now_ms) if wait is None else wait,
        retryable if isinstance(retryable, bool) else None,
        retries if type(retries) is int and retries >= 0 else None,
    )


def _of_text(text: str, words: Words, given: frozenset[str]) -> Sign | None:
    """
    Returns the sign in the first line of *text*, if that says that all of it is a failure and was not in what was *given*.
    """
    head = text[:400].lstrip()
    line = head.partition("\n")[0].rstrip()
    own = (
        words == "own"
        and _LINE.match(line) is not None
        and not any(f"{line.partition(':')[0]}:" in one for one in given)
    )
    return Sign(None, None, text) if own or _END.match(head) is not None else None


def _of_object(value: Any, given: frozenset[str]) -> Sign | None:
    """
    Returns the sign of a failure in an object that brings nothing beside it. One that is called unsuccessful and names its error may bring
    anything.
    """
    if not isinstance(value, Mapping) or value.keys().isdisjoint(_SIGNS):
        return None
    error, errors = value.get("error"), value.get("errors")
    explained = any(
        isinstance(value.get(name), str) for name in ("message", "msg", "error", "detail", "title", "reason")
    )
    numbers = ((number_of(value.get(name)) or 0, name) for name in _STATUS if name != "code" or explained)
    status, named = next(((int(number), name) for number, name in numbers if 400 <= number < 600), (None, ""))
    told = _tells(error) or (_tells(errors) and not (isinstance(errors, list) and _FINDING.match(str(errors[0]))))
    false = next((name for name in _FALSE if value.get(name) is False), None)
    ended = next((name for name in _EXITS if type(number := value.get(name)) is int and number), None)
    word = next(
        (
            word.lower()
            for name in ("status", "state")
            if isinstance(word := value.get(name), str) and not word.isdecimal()
        ),
        "",
    )
    coded = (
        "data" in value
        and value["data"] is None
        and type(value.get("code")) is int
        and value["code"] not in (0, 200)
        and explained
    )
    flagged = any(value.get(name) is True for name in _TRUE) or (told and false is not None)
    if not (flagged or told or status or false or ended or coded or word in FAILED) or (
        type(error) in (int, float) and error and not status
    ):
        return None
    # What has a state of its own and an id is told of: a job that failed was looked up all the same.
    thing = word not in ("", "error", "fail")
    for name, member in {} if flagged else value.items():
        words = " ".join(TOKEN.findall(str(name))).lower()
        if words == "id" or words.endswith(" id"):
            news = thing and words != "request id"
        elif words in ("status", "state"):
            news = told and not status and thing and word not in FAILED
        elif _ABOUT.fullmatch(words) or ((status or ended) and _OUTPUTS.fullmatch(words)) or member is False:
            news = False
        elif isinstance(member, int | float):
            # Who says no more than `false` may answer a question: a number or a flag is the answer.
            news = not (told or status or ended or coded) or (bool(member) and str(member) not in given and not status)
        else:
            news = (
                brings(member) and str(member) not in given and not (status and explained and isinstance(member, str))
            )
        if news:
            return None
    said = (
        f"{named}: {status}"
        if status
        else f"{false}: False"
        if false
        else f"exit code {value[ended]}"
        if ended
        else "error"
    )
    return Sign(None, status, said)


def brings(value: Any, depth: int = 4) -> bool:
    """
    Returns whether *value* holds more than null, false, zeros and empty texts, lists and objects.
    """
    if isinstance(value, Mapping | list | tuple) and depth:
        return any(brings(member, depth - 1) for member in (value.values() if isinstance(value, Mapping) else value))
    return bool(value.strip()) if isinstance(value, str) else bool(value)


def _tells(error: Any) -> bool:
    """
    Returns whether a member `error` says that there was one. A number may be the error of a measurement.
    """
    if isinstance(error, str):
        return error.strip().lower() not in _NO_ERROR
    return error is True or (isinstance(error, Mapping | list) and brings(error))


def value_at(value: Any, path: str) -> Any:
    """
    Returns the value at a dotted *path*, list items by number; `""` is *value* itself, or what its text holds; None if it is not there.
    """
    value = data_in(value) if path and isinstance(value, str) else value
    for name in path.split(".") if path else ():
        is_item = isinstance(value, list) and name.isdecimal() and int(name[:9]) < len(value)
        value = value[int(name[:9])] if is_item else at(value, name) if isinstance(value, Mapping) else None
    return value


def number_of(value: Any) -> float | None:
    """
    Returns a number, also one that is written as text; None for anything else, booleans too.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e18 else None
    return float(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value) else None


def short(value: object) -> str:
    """
    Returns a bounded picture of a value.
    """
    picture = Repr()
    picture.maxdict = picture.maxlist = picture.maxtuple = 8
    picture.maxstring = picture.maxother = 200
    return picture.repr(value)
