"""
What a model gets to read of an error text, and of texts with control characters.
"""

import json
import re
import time
import timeit

from pathlib import Path
from typing import Any

import orjson
import yaml

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.control import cleaned, sanitise
from guardrails.core.text.redaction import REDACTED, SCAN_CHARS, redact, secrets_out, untraced, without_secrets
from tests.tables import table


CASES = yaml.safe_load(Path(__file__).with_name("redaction.yaml").read_text())
KEY = "k9" * 10
SECRETS = {name: "".join(parts).replace("~", KEY) for name, parts in CASES["secrets"].items()}
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60)


@table("secret", SECRETS.values())
@table("around", ["{}", "key {} is wrong", "('{}',)", '{{"a":"{}"}}', "a={}&b=1", "<{}>", "x:{}\n"])
def test_a_secret_is_known_by_its_shape(secret: str, around: str) -> None:
    shown = redact(around.format(secret))
    assert (REDACTED in shown, secret[8:24] in shown) == (True, False)


@given(st.sampled_from(sorted(SECRETS.values())), WORDS)
def test_a_secret_is_found_wherever_it_stands_among_words(secret: str, words: str) -> None:
    assert secret not in redact(f"{words} {secret} {words}", limit=10_000)


@table("case", [*CASES["named"], *({"text": text, "shown": text} for text in CASES["stays"])])
def test_a_secret_is_known_by_its_name_the_name_stays_and_what_only_looks_like_one(case: dict[str, str]) -> None:
    assert redact(case["text"].replace("{github}", SECRETS["github"])) == case["shown"]


def test_redacting_twice_changes_nothing_more() -> None:
    once = without_secrets("\n".join([*SECRETS.values(), *(case["text"] for case in CASES["named"][:30])]))
    assert without_secrets(once) == once


values = st.recursive(
    st.integers(1, 9) | st.text("ab'\"\\{}[]():=, \n1", min_size=1, max_size=12),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text('ab"\\ {]'), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


@given(values, values, values)
def test_a_name_covers_all_that_stands_in_it_and_nothing_beside_it(before: Any, value: Any, after: Any) -> None:
    made = orjson.dumps({"a": before, "password": value, "z": after})
    assert secrets_out(made, "args") == ({"a": before, "password": REDACTED, "z": after}, [("args.password", value)])


def test_a_long_message_keeps_its_head_and_its_tail() -> None:
    shown = redact("begin " + "x" * 5000 + " end")
    assert (len(shown), shown[:6], shown[-4:], "[...]" in shown) == (500, "begin ", " end", True)


@given(st.text(), st.integers(0, 40))
def test_a_message_is_never_longer_than_its_limit_and_always_encodes(text: str, limit: int) -> None:
    shown = redact(text, limit)
    assert len(shown) <= limit
    shown.encode()


@table("shift", range(0, 60, 7))
def test_a_secret_that_the_cut_goes_through_does_not_show(shift: int) -> None:
    secret = SECRETS["github"]
    text = " " * (SCAN_CHARS - shift) + secret + "\n" * (SCAN_CHARS - 40 + shift)
    assert secret[6:12] not in redact(text, limit=10 * SCAN_CHARS)


@table("case", CASES["traces"])
def test_of_a_stack_trace_the_line_that_names_the_error_stays(case: dict[str, str]) -> None:
    text, left = case["text"], case["left"]
    assert (untraced(text), redact(text)) == (left, left.strip())
    assert redact(text, keep_traceback=True) == text.strip()


def seconds(text: str) -> float:
    return min(timeit.repeat(lambda: redact(text), timer=time.thread_time, number=1, repeat=3))


@table("part", CASES["evil"])
def test_the_time_grows_with_the_text_and_not_with_its_square(part: str) -> None:
    small, large = (part * (size // len(part)) for size in (SCAN_CHARS // 8, 2 * SCAN_CHARS))
    assert seconds(large) < 64 * seconds(small) + 0.02  # 16 times the text; the square would be 256


# Control characters


ODD = st.text('\\u0\x00\x1b\x7fbf"n:') | st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
odd_values = st.recursive(
    st.none() | st.integers(-9, 9) | ODD,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('a\\\x00\x7f:"', max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


def clean(value: Any) -> Any:
    if isinstance(value, str):
        return sanitise(value)
    if isinstance(value, list):
        return [clean(one) for one in value]
    return {sanitise(key): clean(one) for key, one in value.items()} if isinstance(value, dict) else value


@given(odd_values)
def test_d9_texts_lose_their_control_characters_and_nothing_else_changes(value: Any) -> None:
    text = cleaned(orjson.dumps(value).decode())
    assert json.loads(text) == clean(value)
    assert "\x7f" not in text
    assert cleaned(text) == text


@table(("text", "expected"), CASES["escapes"])
def test_escapes_that_are_none_stay(text: str, expected: str) -> None:
    assert cleaned(text) == expected


@given(st.text(st.characters(exclude_categories=[])))
def test_d9_sanitised_text_has_no_control_characters_but_newline_return_and_tab(text: str) -> None:
    made = sanitise(text)
    made.encode()
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", made)
    assert sanitise(made) == made
    assert re.sub(r"[^\n\r\t]", "", made) == re.sub(r"[^\n\r\t]", "", text)
    assert sanitise("a\x00b\ud800\r\n\té\U0001f600\ud83d\ude00") == "ab\ufffd\r\n\té\U0001f600\U0001f600"
