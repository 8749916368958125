"""
What a model gets to read of an error text.
"""

import time
import timeit

from typing import Any

import orjson

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.text.redaction import REDACTED, SCAN_CHARS, redact, secrets_out, without_secrets
from guardrails.core.text.traces import untraced
from tests.tables import table


# Made up, in the shapes that the issuers document; cut in two so that no scanner takes them for real ones.
KEY = "k9" * 10
SECRETS = {
    "openai": "sk-" + "proj-" + KEY, "anthropic": "sk-" + "ant-api03-" + KEY, "stripe": "sk_" + "live_" + KEY, "github": "ghp_" + KEY * 2,
    "github fine grained": "github_" + "pat_" + KEY, "gitlab": "glpat" + "-" + KEY, "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "slack": "xoxb" + "-123456789012-" + KEY, "google": "AIza" + "Sy" + KEY * 2, "google oauth": "ya29" + "." + KEY, "hugging face": "hf_" + KEY,
    "npm": "npm_" + KEY * 2, "sendgrid": "SG." + KEY + "." + KEY, "telegram": "123456789" + ":" + "A" * 35,
    "json web token": "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxIn0." + KEY, "age": "AGE-SECRET-KEY-1" + "Q" * 20,
}  # fmt: skip


@table("secret", SECRETS.values())
@table("around", ["{}", "key {} is wrong", "('{}',)", '{{"a":"{}"}}', "a={}&b=1", "<{}>", "x:{}\n"])
def test_a_secret_is_known_by_its_shape(secret: str, around: str) -> None:
    shown = redact(around.format(secret))

    assert REDACTED in shown
    assert secret[8:24] not in shown


@given(
    st.sampled_from(sorted(SECRETS.values())),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=60),
)
def test_a_secret_is_found_wherever_it_stands_among_words(secret: str, words: str) -> None:
    assert secret not in redact(f"{words} {secret} {words}", limit=10_000)


@table(("text", "shown"), [
    ("password=hunter2 and more", "password=[redacted] and more"), ("Password: hunter2", "Password: [redacted]"),
    ('{"password": "a b\\"c", "user": "x"}', '{"password": "[redacted]", "user": "x"}'),
    ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"[redacted]\\"}'), ("{'api_key': 'abc', 'n': 1}", "{'api_key': '[redacted]', 'n': 1}"),
    ("api-key => abc", "api-key => [redacted]"), ("x-api-key: 12345", "x-api-key: [redacted]"), ('{"secret": 12}', '{"secret": "[redacted]"}'),
    ("aws_secret_access_key = abc", "aws_secret_access_key = [redacted]"), ('secretAccessKey: "zzz"', 'secretAccessKey: "[redacted]"'),
    ("PGPASSWORD=abc psql", "PGPASSWORD=[redacted] psql"), ("mysql --password hunter2 -u me", "mysql --password [redacted] -u me"),
    ("Server=db;Uid=me;Pwd=abc;", "Server=db;Uid=me;Pwd=[redacted];"), ("AccountName=a;AccountKey=abc==;E=x", "AccountName=a;AccountKey=[redacted];E=x"),
    ("Authorization: Bearer abcdef", "Authorization: [redacted]"), ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': '[redacted]'}"),
    ('"authorization": "Digest username=\\"x\\", response=\\"a\\""', '"authorization": "[redacted]"'), ("Cookie: a=1; session=2\nHost: x", "Cookie: [redacted]\nHost: x"),
    ("sent Bearer abc123def456ghi to it", "sent Bearer [redacted] to it"), ("GITHUB_TOKEN=abcdefgh1234", "GITHUB_TOKEN=[redacted]"),
    ("https://x/y?key=abcdef1234567890&z=1", "https://x/y?key=[redacted]&z=1"),
    ("https://x/y?a=1&sig=abcdef1234567890abcd", "https://x/y?a=1&sig=[redacted]"), ("DB_PASS=hunter2 psql", "DB_PASS=[redacted] psql"),
    ('{"db_pass": "hunter2"}', '{"db_pass": "[redacted]"}'), ("MY_TOKEN=hunter", "MY_TOKEN=[redacted]"), ("tool --pass hunter2 -v", "tool --pass [redacted] -v"),
    ('{"password": {"value": "hunter2", "hint": "}"}, "n": 1}', '{"password": "[redacted]", "n": 1}'),
    ('{"api_keys": ["hunter2", "b"], "n": 1}', '{"api_keys": "[redacted]", "n": 1}'), ("auth=('bob', 'k9k9k9k9k9k9')", "auth=[redacted]"),
    ('{"token": {"value": "k9k9k9k9k9k9"}}', '{"token": "[redacted]"}'),
    ('{\\"password\\": {\\"value\\": \\"hunter2\\"}}', '{\\"password\\": \\"[redacted]\\"}'),
    ('{"db": {"password": {"value": "hunter2', '{"db": {"password": "[redacted]"'), ('"name": "PASSWORD", "type": "box", "value": "b"', '"name": "PASSWORD", "type": "box", "value": "[redacted]"'),
    ("curl -u admin:hunter2 https://x", "curl -u admin:[redacted] https://x"), ("curl -u 'admin:hunter2' https://x", "curl -u 'admin:[redacted]' https://x"),
    ("['curl', '-u', 'admin:hunter2']", "['curl', '-u', 'admin:[redacted]']"), ("curl --user=admin:hunter2", "curl --user=admin:[redacted]"),
    ('["--password", "hunter2", "-v"]', '["--password", "[redacted]", "-v"]'), ("sent basic Ym9iOmh1bnRlcjI= to it", "sent basic [redacted] to it"),
    ("postgres://me:p4ss@db:5432/x", "postgres://[redacted]@db:5432/x"), ("error\\n" + SECRETS["github"], "error\\n[redacted]"),
    ("postgres://me:p4/ss@db:5432/x", "postgres://[redacted]@db:5432/x"), ("https://me:pa@ss@host/x", "https://[redacted]@host/x"),
    ("redis://:p4ss@cache", "redis://[redacted]@cache"), ("https://0123456789abcdef@host/x", "https://[redacted]@host/x"),
    ('{"user":"u","pass":"hunter"}', '{"user":"u","pass":"[redacted]"}'), ('{"pass":"a b c1!"}', '{"pass":"[redacted]"}'), ("auth=('bob','hunter2')", "auth=[redacted]"),
    ('{"credentials":["bob","hunter2"]}', '{"credentials":"[redacted]"}'), ('{"credential":{"user":"bob","value":"hunter2"}}', '{"credential":"[redacted]"}'),
    ('{"token":{"value":"hunter"},"n":1}', '{"token":"[redacted]","n":1}'), ("slackToken=hunter2", "slackToken=[redacted]"), ("token=abc123", "token=[redacted]"),
    ('{"credential":{"id":5,"value":"hunter2"}}', '{"credential":"[redacted]"}'), ("d['pass'] = 'hunter'", "d['pass'] = '[redacted]'"), ("c(pass='hunter')", "c(pass='[redacted]')"),
    ("HTTPBasicAuth('bob','hunter2')", "HTTPBasicAuth[redacted]"), ("user: me, pass: hunter2", "user: me, pass: [redacted]"),
    ('{"a":"\\u0022' + SECRETS["github"] + '"}', '{"a":"\\u0022[redacted]"}'), ("?user=me&pass=hunter2", "?user=me&pass=[redacted]"),
    ('Authorization: Digest username="x", response="abc"\nHost: z', "Authorization: [redacted]\nHost: z"),
    ('{"h":"Authorization: Basic dXNlcjpwYXM=","x":"y"}', '{"h":"Authorization: [redacted]","x":"y"}'),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\nok", "[redacted]\nok"),
    ("a -----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "a [redacted]"), ("MIIEabc\n-----END PRIVATE KEY-----\nok", "[redacted]\nok"),
])  # fmt: skip
def test_a_secret_is_known_by_its_name_and_the_name_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


@table("text", [
    "max_tokens: 4096 is more than 2048", "token: expired", "invalid credentials: account locked", "Unexpected token: } at position 3", "secretary: John",
    "tests passed: 5, failed: 2", "pwd: /home/me/project", "cache key: user_1234567890123", "http://localhost:8080/a@b", "ssh://git@host/x",
    "order #W1234567890 not found for user mia_li_3668", "commit 394f81fab87f0c6e1d does not exist", 'password: ""', "disk-space-management-in-clusters",
    "tests pass: 5, pass: true, two_pass: 12, pass_rate=95%", "second pass: optimizing", "bypass: a1b2c3", "UNEXPECTED_TOKEN: }", "max_token=4096",
    "docker run -u 1000:1000 x", "curl -u https://x/y", "basic authentication is not enough", "auth: (see the docs, section 2)",
    "session_id: 2026-01-13-7bf322a0", '{"tokens": {"used": 5}, "token": {"retries": 3}}', "--- PASS: TestPath/x1_y2_z3 (0.00s)",
    'if apiKey == "" {', "verdict: ok ? 'pass' : 'failed'", '"Enter password:", "then"', "password:\nname: x", 'token_usage: {"input": 74916}', "GIT_AUTHOR=me12345678901",
    "mkdir -p src/app && docker run -p 8080:80 nginx", "OLDPWD=/home/me PWD=/tmp", "<token>true</token> <label for='password'>Password</label>",
    "tokens: 120", '{"token_count": 120}', '{"token": null, "auth": true}', "pass: 12, fail: 3", '{"pass": 3, "fail": 1}', "PASS=3", "auth: none", "key: value",
    '{"token_type": "bearer"}', '{"auth": "none"}', "auth: oauth2", 'token: "{{ .Env.TOKEN }}"', 'tokens: {"total": 5, "unit": "x"}', '{"tokens": {"ephemeral_5m_input": 5}}', "ok ? 'pass' : 'fail'",
    '{"secret": null}', '["password", "username", "email"]', "ask-abcdefghijklmnopqrstuvwxyz and task-scheduler-with-a-long-name",
])  # fmt: skip
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


NAMED = ("A_PASS=b", "auth=('b', 'k9k9k9k9k9k9')", "-u a:bc", "basic Ym9iOmh1bnRlcjI=", '{"secret": ["b", 1]}')


def test_redacting_twice_changes_nothing_more() -> None:
    once = without_secrets("\n".join([*SECRETS.values(), "password=x", "Authorization: Bearer y", "a://b:c@d", *NAMED]))

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


NOTEBOOK = f"""{"-" * 75}
TimeoutError                              Traceback (most recent call last)
Cell In[3], line 4
      1 x = 1
----> 4 wait()

TimeoutError: slow"""
PLAIN = 'Traceback (most recent call last):\n  File "/x.py", line 1, in f\n    g()\n'


@table(("text", "left"), [
    (NOTEBOOK, "TimeoutError: slow"), (f"Tool failed: {PLAIN}KeyError: 1\nAsk for something else.", "Tool failed:\nKeyError: 1\nAsk for something else."),
    (f"{PLAIN}A: 1\n\nDuring handling of the above exception, another exception occurred:\n\n{PLAIN}B: 2", "\n\n\nB: 2"),
    ('  File "/srv/a.py", line 3, in f\n    g()\nTimeoutError: slow', "TimeoutError: slow"),
    ("TypeError: no\n    at foo (/srv/b.js:10:3)\n    at n (native)\nnext", "TypeError: no\nnext"),
    ("java.io.IOException: gone\n\tat com.example.Foo.bar(Foo.java:10)\n\t... 12 more", "java.io.IOException: gone\n"),
    *((text, text) for text in ("one line", "meet\n  at noon", "a list:\n  - at 10:30 we start\n", '{"a":\n  1}')),
])  # fmt: skip
def test_of_a_stack_trace_the_line_that_names_the_error_stays(text: str, left: str) -> None:
    assert untraced(text) == left
    assert redact(text) == left.strip()
    assert redact(text, keep_traceback=True) == text.strip()


# The cost of `redact` is bounded by what it looks at, whatever the text is made of.
EVIL = [
    'a', 'eyJ-', '://a:', '://a:b/', 'password="', 'password=' + '"' + '\\' * 50, 'Traceback (most recent call last)\n', '\n    at :1:1',
    '-----BEGIN PRIVATE KEY-----', '--a-', ' ', 'authorization', 'token=-', 'cookie:', '1234567890', '-u a:', "auth=('", 'authorization: a="b', 'token={{"a', 'auth=[ ', 'A_TOKEN=', 'basic ', 'token:["',
]  # fmt: skip


def seconds(text: str) -> float:
    return min(timeit.repeat(lambda: redact(text), timer=time.thread_time, number=1, repeat=3))


@table("part", EVIL)
def test_the_time_grows_with_the_text_and_not_with_its_square(part: str) -> None:
    small, large = (part * (size // len(part)) for size in (SCAN_CHARS // 8, 2 * SCAN_CHARS))

    assert seconds(large) < 64 * seconds(small) + 0.02  # 16 times the text; the square would be 256
