"""
Text that is fit to be read by a model: no secrets, no tracebacks, no control characters, bounded.

Everything is bounded before it is searched, and no pattern can backtrack over an unbounded run. So the time does not
depend on the author of the text. Secrets are found by the shapes that their issuers document and by the names that
people give them. A secret without either stays.
"""

import re

from typing import Final

from guardrails.core.values.late_pattern import pattern

from .tracebacks import without_traceback


MESSAGE_CHARS: Final = 500
"""Length of a redacted message in characters, marks included."""
SCAN_CHARS: Final = 16_384
"""Characters looked at from either end of a longer text."""
EDGE_CHARS: Final = 512
"""Left out where such a text was cut, after the search: half a secret has no shape that could be found."""
REDACTED: Final = "[redacted]"
CUT: Final = "[...]"

_CONTROL: Final = {code: None for code in (*range(32), 127) if chr(code) not in "\n\r\t"}
_NOT_TEXT: Final = pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_PRIVATE_KEY: Final = pattern(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----.*?(?:-----END [^\n]{0,60}|\Z)", re.DOTALL
)
_PRIVATE_KEY_END: Final = pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[^\n]{0,15}")

_TOKEN: Final = pattern(
    r"""(?:(?<![A-Za-z0-9])|(?<=\\[nrtfb])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[ux]00[0-9A-Fa-f][0-9A-Fa-f]))(?:
      sk-[A-Za-z0-9_-]{16,}                                  # OpenAI, Anthropic, OpenRouter, DeepSeek
    | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/=]{16,}
    | gh[oprsu]_[A-Za-z0-9]{16,} | github_pat_\w{20,} | gl(?:pat|dt|rt|cbt|ptt)-[\w.-]{16,}
    | A(?:KI|SI|GP|RO|ID|NP)A[A-Z0-9]{16}
    | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{8,} | hooks\.slack\.com/services/[\w/]{8,}
    | AIza[\w-]{30,} | ya29\.[\w-]{16,} | GOCSPX-[\w-]{16,}
    | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{30,} | SG\.[\w.-]{32,}
    | gsk_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,} | pplx-[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,} | tvly-[\w-]{16,}
    | do[opr]_v1_[a-f0-9]{32,} | dapi[a-f0-9]{32} | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32} | lin_api_\w{20,} | ntn_\w{20,}
    | (?:bot)?[0-9]{8,10}:[\w-]{35} | AGE-SECRET-KEY-1[0-9A-Z]{16,}
    | (?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*         # JSON web tokens, signed and encrypted
    )""",
    re.VERBOSE,
)

_URL_LOGIN: Final = pattern(
    r"""://(?:
      [^\s/?#@:"'<>]{0,256}:(?:[^\s/"'<>]{1,256}@ | (?!\d{1,5}[/?#])[^\s"'<>@]{1,256}@)   # not the port of host:8080/a@b
    | [^\s/?#@:"'<>]{16,256}@)""",
    re.VERBOSE,
)

# A name may go on (`password2`, `secretAccessKey`, `token_v2`) but not into another word (`secretary`, `tokens`).
_QUOTE: Final = r"""(?:%2[27]|&quot;|&\#3[49];|\\u002[27])?"""
_SIGN: Final = (
    rf"""\\{{0,3}}["'`\])]{{0,2}}{_QUOTE}\s{{0,3}}(?:=>|:=|[:=]|%3[ADad]|\\u003[ADad]|\\x3[ADad]|&\#(?:61|58|[xX]3[ADad]);)\s{{0,3}}"""
    + _QUOTE
)
"""As it is, or as URLs, JSON and XML write it."""
_SEPARATOR: Final = r"""(?:\d{1,3}|[_-][\w-]{0,24}|(?-i:[A-Z])\w{0,24})?""" + _SIGN
_VALUE: Final = (
    r"""(?:\\{1,3}["'][^"'\\\n]*|"(?:[^"\\\n]|\\.)*|'(?:[^'\\\n]|\\.)*"""
    r"""|[^\s,;&"'`<>(){}\[\]\\]+)"""
)

_HEADER: Final = pattern(
    rf"""((?:authorization|authentication){_SEPARATOR})(
      (?:digest|aws4-hmac-sha256|hawk)\s[^\n\r]*
    | ["']?(?:basic|bearer|token|apikey|negotiate)\s{{1,3}}{_VALUE}
    | {_VALUE})""",
    re.VERBOSE | re.IGNORECASE,
)
_COOKIE: Final = pattern(rf"""(cookie{_SEPARATOR})(["']?[^\n\r"'{{}}\[\]]+)""", re.IGNORECASE)
_NAMED: Final = pattern(
    rf"""((?:pass(?:word|wd|phrase|code)|secret|api[ _-]?key|apikey|access[_-]?key|account[_-]?key|private[_-]?key
    |signing[_-]?key|encryption[_-]?key|subscription[_-]?key|connection[_-]?string){_SEPARATOR}
    |(?:\b|(?<=_))pwd{_SEPARATOR}(?![/~.])
    |--(?:[\w-]{{1,20}}-)?(?:password|pass|secret|token|api-key)(?:\s{{1,3}}|["']\s{{0,3}},\s{{0,3}}(?=["']))
    )({_VALUE})""",
    re.VERBOSE | re.IGNORECASE,
)
_LOOSELY_NAMED: Final = pattern(
    rf"""((?:token|bearer|signature|credentials?|sess(?:ion)?[_-]?id|\bsig|\bauth|[?&]key){_SEPARATOR}
    |\b(?:bearer|basic)\s{{1,3}})({_VALUE})""",
    re.VERBOSE | re.IGNORECASE,
)
_VARIABLE: Final = pattern(
    rf"""(\Bpass(?<=_pass){_SIGN} | \B(?-i:TOKEN(?<=_TOKEN)|AUTH(?<=_AUTH))["']?=)({_VALUE})""",
    re.VERBOSE | re.IGNORECASE,
)
"""`DB_PASS: ...`, `MY_TOKEN=...`"""
_PASS: Final = pattern(rf"""((?:\bpass(?<!-pass){_SIGN}|token["']?=))({_VALUE})""", re.IGNORECASE)
_PAIR: Final = pattern(
    rf"""((?:(?:\bauth|credentials?){_SIGN}|(?:basic|digest)auth)[(\[]\s{{0,3}}["'][^"'\n]{{0,64}}["']\s{{0,3}},\s{{0,3}})
    (?=["'])({_VALUE})""",
    re.VERBOSE | re.IGNORECASE,
)
"""`auth=("user", "...")`"""
_LOGIN_FLAG: Final = pattern(
    r"""((?<![\w-])(?:-u|--user)(?:["'],)?[\s=]{0,3}["']?[^\s:"'/]{1,64}:)(?!//)([^\s"'\[][^\s"']{0,255})"""
)
"""`curl -u user:...`"""
_OF_SECRETS: Final = r"""(?:[\w.:-]{0,24}(?:[_.:-]|(?-i:[a-z](?=[A-Z]))))?(?:pass(?:word|wd|phrase)|secret|(?:api|access|private|secret)[_-]?key|(?:auth|access)[_-]?token)"""
_IN_XML: Final = pattern(
    rf"""(<{_OF_SECRETS}(?:\s[^<>]{{0,100}})?>(?:<!\[CDATA\[)?)([^<\s][^<\]]{{0,200}})(?=\]\]>|</)""", re.IGNORECASE
)
_OF_NAME: Final = pattern(
    rf"""(\b(?:key|name)\\?["']?\s{{0,3}}[:=]\s{{0,3}}\\?["']{_OF_SECRETS}\\?["']
    (?:\s{{0,3}},?\s{{0,3}}\\?["']?value\\?["']?\s{{0,3}}[:=]\s{{0,3}}(?=\\?["']) | \s{{0,3}}>(?=[^<\s])))
    (\\["'][^"'\\\n]*|"[^"\n]{{0,200}}|'[^'\n]{{0,200}}|[^<"'\\]{{1,200}})""",
    re.VERBOSE | re.IGNORECASE,
)
"""`<add key="Password" value="..."/>`, `{"name": "password", "value": "..."}`"""
_SHORT_FLAG: Final = pattern(
    r"""(\b(?:(?:sshpass|(?:docker|podman|nerdctl|helm\ registry|oras)\ login)\b[^\n|;&]{0,80}?\s["']?-p[\s"',]{0,4}
      |sshpass["'],\s?["']-p["']?,?\s?["']? | (?:mysql|mariadb)(?:dump|admin|import|check|show)?\b(?:["'],\s?["']-p["'],\s?["']
      |[^\n|;&]{0,80}?\s["']?-p)))([^\s"',;|&-][^\s"',;|&]{0,200})""",
    re.VERBOSE,
)
"""`sshpass -p ...`, `mysql -p...`; what else `-p` may be is left."""
_NAME_WORDS: Final = (
    "auth",
    "cookie",
    "pass",
    "secret",
    "key",
    "pwd",
    "string",
    "token",
    "bearer",
    "sig",
    "credential",
    "sess",
    "basic",
)
"""Lowercase; one of them is in every name that the three patterns above know, and to look for words is cheaper."""
_PLAIN: Final = pattern(r"[\d.]{1,9}%?|true|false|none|null|yes|no|ok", re.IGNORECASE)
"""Of a name that may also count or tell how something went."""
_MIXED: Final = pattern(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])\S{6,}")
_RANDOM: Final = pattern(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w.~+/=%:-]{12,}|[\w.~+/=%-]{32,}")


def sanitise(text: str) -> str:
    """
    Returns *text* without NUL, DEL and the other ASCII control characters; newline, carriage return and tab stay.

    Surrogates that form a pair become their character, lone ones U+FFFD, so that the answer always encodes to UTF-8.
    """
    if text.isascii():
        return text.translate(_CONTROL)
    if _NOT_TEXT.search(text) is None:
        return text

    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(_CONTROL)


def redact(text: str, limit: int = MESSAGE_CHARS, *, keep_traceback: bool = False) -> str:
    """
    Returns *text* as an error message for a model: sanitised, secrets and stack traces taken out, at most *limit*
    characters.

    A secret becomes `[redacted]`, the name before it stays; of a traceback only its last line stays, of a longer
    message head and tail. Only the two ends of a text above 2 x 16,384 characters are looked at.

    *keep_traceback* is for tools whose very result is one, such as interpreters.
    """
    if len(text) <= 2 * SCAN_CHARS:
        return _shortened(_clean(text, keep_traceback), limit)

    head, tail = _clean(text[:SCAN_CHARS], keep_traceback), _clean(text[-SCAN_CHARS:], keep_traceback)
    return _shortened(f"{head[:-EDGE_CHARS]} {CUT} {tail[EDGE_CHARS:]}".strip(), limit)


def without_secrets(text: str) -> str:
    """
    Returns *text* with API keys, tokens, passwords, logins in URLs and private keys replaced by `[redacted]`.

    Meant for text that is already bounded.
    """
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(REDACTED, text)
        # The tail of a long text may begin inside a key.
        if (end := _PRIVATE_KEY_END.search(text)) is not None:
            text = REDACTED + text[end.end() :]
    if "://" in text:
        text = _URL_LOGIN.sub(f"://{REDACTED}@", text)

    lowered = text.lower()
    if any(word in lowered for word in _NAME_WORDS):
        text = _HEADER.sub(_named, text)
        text = _COOKIE.sub(_named, text)
        text = _NAMED.sub(_named, text)
        text = _PAIR.sub(_named, text)
        text = _OF_NAME.sub(_named_unless_plain, text)
        text = _IN_XML.sub(_named_unless_plain, text)
        text = _VARIABLE.sub(_named_unless_plain, text)
        text = _PASS.sub(_named_if_mixed, text)
        text = _LOOSELY_NAMED.sub(_named_if_random, text)
    if "-p" in text:
        text = _SHORT_FLAG.sub(_named, text)
    if "-u" in text:
        text = _LOGIN_FLAG.sub(_named_unless_plain, text)
    return _TOKEN.sub(REDACTED, text)


def _named(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    quote = value[: len(value) - len(value.lstrip("\\\"'"))]
    return f"{name}{quote}{REDACTED}" if len(value) > len(quote) else found[0]


def _named_if_random(found: re.Match[str]) -> str:
    return _named(found) if _RANDOM.fullmatch(found[2].strip("\\\"'")) else found[0]


def _named_if_mixed(found: re.Match[str]) -> str:
    value = found[2]
    said = value.strip("\\\"'")
    quoted = value != said and "pass" in found[1].lower() and _PLAIN.fullmatch(said) is None
    return _named(found) if quoted or _MIXED.fullmatch(said) else found[0]


def _named_unless_plain(found: re.Match[str]) -> str:
    return found[0] if _PLAIN.fullmatch(found[2].strip("\\\"'")) else _named(found)


def _clean(text: str, keep_traceback: bool) -> str:
    text = sanitise(text)
    return without_secrets(text if keep_traceback else without_traceback(text)).strip()


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text

    room = max(0, limit - len(CUT) - 2)
    tail = room // 3
    return f"{text[: room - tail]} {CUT} {text[len(text) - tail :]}"[:limit]
