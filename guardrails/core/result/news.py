"""
The news in a result, as one small number: two results with equal news bring the same.
"""

from collections.abc import Set
from typing import Any, Final

from orjson import OPT_SORT_KEYS, dumps
from xxhash import xxh3_64_intdigest

from guardrails.core.values.pattern import pattern

from . import Reading, evidence_of
from .names import Form, form_of


STEADY: Final = 8_192
"""Bytes of a result of which the news is taken; longer ones are compared as they are."""
_WORD: Final = pattern(r"(\w+)")
_GIVEN: Final = pattern(r"(?:~\W*)+")
_DIGITS: Final = pattern(r"[0-9]")


def news_hash(reading: Reading) -> int:
    """
    Returns 32 bits of the news in a result: of an object neither what repeats an argument, nor times, durations, ids of the request and
    counts of progress. Of a failure its kind and first words, without digits and arguments.
    """
    if reading.error_type is not None:
        return xxh3_64_intdigest(_failure(reading).encode(errors="replace")) & 0xFFFFFFFF or 1
    shown, content, digest = reading.rendered or reading.render(), reading.content, reading.hash
    if shown is not None and shown.size <= STEADY and type(content) is dict:
        try:
            news = news_of(content, reading.given, form=reading.form)
            digest = xxh3_64_intdigest(dumps(news, None, OPT_SORT_KEYS)) if news and news != content else digest
        except TypeError:
            # What JSON has no form for is compared as it is.
            pass
    return digest & 0xFFFFFFFF or 1


def _failure(reading: Reading) -> str:
    from guardrails.core.text.traces import untraced

    message = reading.error_message or evidence_of(reading, reading.render()).decode(errors="replace")
    given = set(_WORD.findall(" ".join(reading.given))) if reading.given else ()
    parts = ["~" if part in given else part for part in _WORD.split(untraced(message[:4096])[:400])]
    text = _DIGITS.sub("", _GIVEN.sub("~", "".join(parts)))
    return f"{reading.error_type}: {text[:120]}"


def news_of(content: Any, given: Set[str], depth: int = 4, form: Form | None = None) -> Any:
    """
    Returns what is news in *content*: of an object what neither repeats an argument nor speaks of itself. If it holds rows by a usual name
    they are all of it, but for its states. Raises TypeError for what JSON has no form for.
    """
    if type(content) is not dict or not depth:
        return content
    form = form or form_of(content)
    names = form.stated if content.get(form.rows) else form.facts
    news = {key: content[key] for key in names if str(content[key]) not in given}
    for key, _ in form.lists:
        news[key] = content[key]
    for key, its in form.objects:
        if not its.aside and (inside := news_of(content[key], given, depth - 1)) != {}:
            news[key] = inside
    return news
