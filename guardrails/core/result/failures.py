"""
Failures that hide in results: by what is declared of the tool, else by structure, in every carrier. In doubt a result is a success.

An object fails by a sign (`isError`, `ok` or `success` false, an `error`, a status of failure, an exit code) with no data beside it. A text
fails by its first line, if it is the tool's own.
"""

import re

from collections.abc import Callable, Mapping, Set
from typing import Any, Final, Literal, NamedTuple

from guardrails.core.values.caches import pattern
from guardrails.core.values.types import ErrorType, Outcome

from .content import Carried, at, brings, first, http_error, may_carry, short
from .kinds import REASONS, kind_of, kind_of_text, status_in
from .names import ERRORS, EXITS, STATUS, TELLS, Form, flat


Words = Literal["own", "program", "shown"]
"""Whose words a text is: the tool's; a program's, which ends in a traceback or an exit code if it fails; others', that it shows."""

FAILED: Final = frozenset("error failed failure fail fatal denied unauthorized timeout".split())  # noqa: SIM905
_SAYS: Final = "error.message error.error_message error_message errorMessage error message detail errors reason msg stderr title output"
_KINDS: Final = "error_type errorType error.error_type error.type error.code error_code code type name error"
_ABOUT: Final = r"""(?x)(?:^|_)(?:err|mess|msg|detail|reason|cause|code|type|kind|title|desc|hint|help|sugg|trace|stack|exception|warn|time|at$|date|elapsed|duration
|took|inst|ur[li]|href|path|doc|retr|attempt|status|state|ok|success|fail|limit|remain|reset|quota|categ|sever|level|domain|field|param|version|jsonrpc|http|exit|return|id$)"""
"""Names of scalars that say more of a failure, or of the call; and of the objects and lists that do."""
_HOLDS: Final = "err|detail|head|warn|exten|locat|trace|stack|param|field|meta|cause"
_NO_ERROR: Final = r"(?i)\s*+(?:none|null|nil|no|false|0|ok|success|n/a|no error)?[\s.!]*+"
_OUTPUT: Final = "stdout|stderr|output|command|cmd|cwd|pid|signal|body|headers|text|content|html|response"
"""Members of a command's end, or of an HTTP response, beside its status."""
_PLACES: Final = frozenset({"line", "row", "column", "file", "severity", "rule"})
"""Members of a finding: an error at a place of what was looked at is what was asked for."""
_LINE: Final = rf"""(?ix)\W{{0,4}}(?:(?:(?:fatal|unexpected|unknown|tool|api|https?|network|database|system|request|execution|connection|runtime|syntax
|internal(?:\ server)?|(?:input\ |output\ )?validation)\ )?error(?:\ (?!handl|logg|report|track|monitor)\w{{3,20}}ing\b[^\n:]{{0,100}}|\ ?[(\[][^\n:]{{1,40}}[)\]])?:\ *(?=\S)
|(?:[a-z_]\w{{0,60}}\.){{0,6}}[a-z]\w{{0,60}}(?-i:Error|Exception):\ *(?=\S))(?![-+]?\d*\.\d|(?![45]\d\d$)[-+\d,%\ ]{{0,40}}$|(?:none|null|nil|no|n/a)\b[.\ ]*$)
|http(?:/\d(?:\.\d)?)?[\ :]{{1,2}}(?:error:?\ ?|status:?\ ?)?[45]\d\d\b|[45]\d\d{REASONS}"""
_END: Final = r"""(?ix)(?:process\ |command\ )?(?:exited\ with\ |failed\ with\ )?exit\ ?(?:code|status)[:=\ ]{0,2}\ ?[1-9]\d{0,2}\b
|process\ exited\ with\ code\ [1-9]|(?:-{20,100}\s{1,3}[A-Z]\w{2,60}\ {2,80})?Traceback\ \(most\ recent\ call\ last\)"""
_HTTP: Final = rf"(?ix)(?:http\S{{0,10}}\ )?[45]\d\d{REASONS}\W{{0,3}}"
_ID: Final = pattern("(?:.*_)?(?<!request_)id")
_FAILING: Final = ("error", "exception", "traceback", "exit")
_MAY: Final = pattern(r"\W*(?:[45]\d\d|http)|\s*[{`\"\[]")


class Sign(NamedTuple):
    """
    A sign of a failure: the kind and the status that it names, and itself in words.
    """

    kind: ErrorType | None = None
    status: int | None = None
    words: str = "the tool reported an error and said nothing of it"


class Source(NamedTuple):
    """
    What is known of the tool whose results are read: how it says that it failed, where its messages, its waits, its cursors and its
    totals stand, and whose words its texts are.
    """

    sign: Callable[[tuple[Any, ...], str | None], Sign | None] | None = None
    says: str | None = None
    waits: str | None = None
    more: str = ""
    total: str = ""
    words: Words = "own"


def may_fail(value: Any, form: Form | None = None) -> bool:
    """
    Returns whether *value*, an object of this *form* or something else, is worth a closer look. The content of what is not is the value
    itself.
    """
    if form is not None:
        return form.carries or not all(map(_is_well, form.tells, map(value.__getitem__, form.tells)))
    if type(value) is not str:
        return may_carry(value)
    head = value[:320].lower()
    return any(map(head.__contains__, _FAILING)) or _MAY.match(head) is not None


def failure_in(value: Any, content: Carried, source: Source, given: Set[str], now_ms: Any) -> Outcome | None:
    """
    Returns the failure that *value* with this *content* is: by MCP's `isError: true`, by what is declared, or by structure. Its message is
    not redacted.
    """
    view, flagged, text = content
    sign = Sign() if flagged else None
    if source.sign is not None:
        sign = source.sign((view, value), text) or sign
    elif not flagged:
        # What a reader of files shows is others' words, whatever it holds but a line of HTTP.
        words: Words = "own" if isinstance(view, str) and re.fullmatch(_HTTP, view.strip()) else source.words
        if words != "shown" or text is None:
            sign = _of_text(view, words, given) if isinstance(view, str) else _of_object(view, given)
    if sign is None:
        return None
    sentence = first(view, source.says or _SAYS, lambda one: short(one) if brings(one) else None)
    message = (view.strip() if isinstance(view, str) else (text if flagged else None) or sentence) or sign.words
    return _outcome(sign, view, message, source.waits, now_ms)


def _outcome(sign: Sign, view: Any, message: str, waits: str | None, now_ms: int | None) -> Outcome:
    from .waits import wait_in_fields, wait_in_text, wait_ms

    status = sign.status or first(view, "error.code error.status code", http_error) or status_in(message)
    # What a command wrote is judged as the text of one that failed.
    text = f"{sign.words}\n{message}" if sign.words.startswith("exit") else message
    kind = sign.kind or first(view, _KINDS, kind_of) or kind_of_text(text, status) or "other"
    wait = wait_ms(at(view, waits), now_ms) if waits else None
    for place in (view, at(view, "error"), at(view, "headers")):
        if wait is None and isinstance(place, Mapping):
            named = {flat(str(name)).replace("_", "-"): value for name, value in place.items()}
            wait = wait_in_fields(named, status or (429 if kind == "rate_limit" else None), now_ms)
    made = Outcome(None, kind, message, status, wait_in_text(message, now_ms) if wait is None else wait)
    made.retryable = first(view, "retryable error.retryable", lambda claim: claim if type(claim) is bool else None)
    left = "max_retries_remaining error.max_retries_remaining"
    made.retries = first(view, left, lambda left: left if type(left) is int and left >= 0 else None)
    return made


def _of_text(text: str, words: Words, given: Set[str]) -> Sign | None:
    """
    Returns the sign in the first line of *text*, if that says that all of it is a failure and was not in what was *given*.
    """
    head = text[:400].lstrip()
    line = head.partition("\n")[0].rstrip()
    own = words == "own" and re.match(_LINE, line) and not any(f"{line.partition(':')[0]}:" in one for one in given)
    return Sign(words=text) if own or re.match(_END, head) else None


def _of_object(value: Any, given: Set[str]) -> Sign | None:
    """
    Returns the sign of a failure in an object that brings nothing beside it. One that is called unsuccessful and names its error may bring
    anything.
    """
    if not isinstance(value, Mapping) or all(_is_well(name, value[name]) for name in value.keys() & TELLS):
        return None
    explained = first(value, "message msg error detail title reason", _sentence)
    status = first(value, (*STATUS, "code") if explained else STATUS, http_error)
    ended = first(value, EXITS, lambda number: number if type(number) is int and number else None)
    code, empty = value.get("code"), "data" in value and not brings(value["data"])
    coded = empty and explained and type(code) is int and not 200 <= code < 300
    error = _is_error(next((value[name] for name in ERRORS if name in value), None), listed=not empty)
    false = value.get("ok") is False or value.get("success") is False
    word = str(value.get("status", value.get("state", ""))).lower()
    plain = bool(error or status or ended or coded or word in FAILED)
    sure = True in (value.get("isError"), value.get("is_error")) or (error and false)
    # What has a state of its own is told of, also if it has an id: a job that failed was looked up all the same.
    thing = word not in ("", "error", "fail") and not word.isdecimal()
    thing = thing and ((word not in FAILED and not status) or any(map(_ID.fullmatch, map(flat, map(str, value)))))
    if not sure and (thing or not (plain or false) or _brings_more(value, given, status or ended, explained, plain)):
        return None
    return Sign(None, status, f"exit code {ended}" if ended else f"status {status}" if status else Sign().words)


def _brings_more(value: Mapping[Any, Any], given: Set[str], number: Any, explained: Any, plain: bool) -> bool:
    """
    Returns whether a failure brings more than words on itself. Beside a status or an exit code, output says no more, and beside one that is
    explained no scalar does.
    """
    for key, member in value.items():
        name, holds = flat(str(key)), isinstance(member, Mapping | list | tuple)
        aside = number and (re.fullmatch(_OUTPUT, name) or (explained and not holds))
        # Who says no more than `false` may answer a question: a number or a flag is the answer.
        more = (brings(member) and str(member) not in given) or (isinstance(member, int | float) and not plain)
        if more and not (aside or re.search(_HOLDS if holds else _ABOUT, name)):
            return True
    return False


def _sentence(value: Any) -> str | None:
    return value if isinstance(value, str) and not re.fullmatch(_NO_ERROR, value) else None


def _is_error(error: Any, *, listed: bool) -> bool:
    """
    Returns whether the value of an `error` tells of one. A *listed* one at a place of what was looked at is what was asked for.
    """
    one = error[0] if listed and isinstance(error, list) and error else None
    place = re.match(r"(?i)line \d|\S+:\d", one) if isinstance(one, str) else one and not _PLACES.isdisjoint(one)
    return not place and (_sentence(error) is not None or (type(error) not in (str, int, float) and brings(error)))


def _is_well(name: str, one: Any) -> bool:
    """
    Returns whether a sign of this *name* speaks of no failure, by a glance at it.
    """
    if type(one) is bool:
        return one is (name in ("ok", "success"))
    if type(one) is int:
        return one == 0 or (200 <= one < 300 and name not in EXITS)
    return not one or (type(one) is str and name in STATUS and one.lower() not in FAILED and not one[0].isdecimal())
