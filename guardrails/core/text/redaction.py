"""
Text that is fit to be read by a model: no secrets, no stack traces, bounded.

A secret is known by the letters with which its issuer begins it, or by the name before it, and a name covers all that stands in it. A secret
without either stays. Everything is bounded before it is searched, and no pattern can backtrack over an unbounded run.
"""

import json
import re

from collections.abc import Iterator
from typing import Any, Final

from guardrails.core.text.control import sanitise
from guardrails.core.values.caches import pattern


MESSAGE_CHARS: Final = 500
"""Length of a redacted message in characters, marks included."""
SCAN_CHARS: Final = 16_384
"""Characters looked at from either end of a longer text."""
EDGE_CHARS: Final = 512
"""Left out where such a text was cut, after the search: half a secret has no shape that could be found."""
REDACTED: Final = "[redacted]"
CUT: Final = "[...]"
_PRIVATE_KEY: Final = re.compile(
    r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----.*?(?:-----END [A-Z0-9 ]{0,50}-{0,5}|\Z)"
    r"|\A.*-----END [A-Z0-9 ]{0,40}PRIVATE KEY-{0,5}"
)
"""Whole, or without its beginning: the tail of a long text may begin inside of one."""
_LOGIN: Final = re.compile(
    r"""://(?:[^\s/?#@:"'<>]{0,256}:(?:[^\s/"'<>]{1,256}@|(?!\d{1,5}[/?#])[^\s"'<>@]{1,256}@)|[^\s/?#@:"'<>]{16,256}@)"""
)
"""In a URL; not the port of `host:8080/a@b`."""
_USER: Final = re.compile(r"""((?:-u|--user)(?:["'],|[\s=])\s?["']?[^\s:"'/]{1,64}:)(?!//|\d)[^\s"'\\]+""")
"""Of `curl -u name:password`; two numbers are the user and the group of a container."""
_ISSUED: Final = {
    "sk_live_|sk_test_|rk_live_|ghp_|gho_|ghr_|ghs_|ghu_|npm_|dop_v1_|lin_api_|ntn_|shpat_|gsk_|hf_|r8_|AKIA|ASIA|dapi": r"[A-Za-z0-9]{16,}",
    r"sk-|xoxa-|xoxb-|xoxe|xoxp-|xoxs-|xapp-|github_pat_|glpat-|AIza|ya29|GOCSPX-|SG\.|tvly-|pplx-|xai-|whsec_|pypi-Ag|AGE-SECRET-KEY|hooks\.slack\.com/services/": r"[\w./+=-]{16,}",
    "eyJ": r"[\w-]{5,512}\.[\w-]{5,}[\w.-]*",
    ":AA": r"[\w-]{33}",
}
"""How secrets begin, and what follows: those of issuers, JSON web tokens, and the second part of those of Telegram."""
_BEGINNINGS: Final = "|".join(_ISSUED).replace("\\", "").split("|")
_LONG: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{16,}")
"""What has so many characters at least. It may be an issued secret."""
_KNOWN: Final = (
    r"(?a)(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=\\u00[0-9A-Fa-f]{2})|(?<=%[0-9A-F][0-9A-F])|(?<=[0-9]{8})(?=:))"
    f"(?:{'|'.join(f'(?:{begin}){rest}' for begin, rest in _ISSUED.items())})"
)
"""At the beginning of a word, also behind a character that JSON or a URL has escaped."""
_SURE: Final = r"""pass(?:word|wd|phrase|code)|secret|api[ _-]?key|access[ _-]?key|account[ _-]?key|private[ _-]?key|signing[ _-]?key
|cryption[ _-]?key|subscription[ _-]?key|connection[ _-]?string|cookie|authorization|pwd(?!\W{1,6}[/~.])
|pass(?-i:(?<=_PASS))(?==\D)|token(?-i:(?<=_TOKEN))(?==\D)
|pass(?:(?<=["'_]pass)(?=\\{0,3}["'](?::|\][ ]?=)[ ]?\\{0,3}["'])|(?=["'][ ]?:[ ]?["'](?=[a-z]{0,40}[^\sa-z"'])[^\s"']{6}))"""
"""Names of secrets, or how they end; not a working folder, nor `PASS: test_1`, nor `ok ? 'pass' : 'failed'`."""
_UNSURE: Final = r"token|bearer|signature|credentials?|\?key|&key|sig(?<![a-z]sig)|auth(?<![a-z]auth)|pass(?-i:(?<=[?&{(]pass)|(?<=[,{][ ]pass))"
"""Names that may mean something else: they cover texts in quotes, alone or in brackets, and words that are mixed of letters and digits."""
_NAMES: Final = f"(?x){_SURE}|{_UNSURE}|pass|basic|--"
_MORE: Final = r"(?:\d{1,3}|(?P<more>[_-][\w-]{0,24}|(?-i:(?<=[a-z])[A-Z])\w{0,24})|s(?=\W{1,9}[\[({]))?"
"""Of a name: `password2`, `secretAccessKey`, `api_keys: [`, but not `secretary`."""
_QUOTE: Final = r"""\\{0,3}["']"""
_MIXED: Final = r"""(?=[a-z_.+/=%:-]{0,64}[0-9])(?=[0-9_.+/=%:-]{0,64}[a-z])[\w.+/=%:-]{12,512}+(?![^\s"'`,;&)}\]<\\]|\\{0,3}["']\s?:)"""
_WITHIN: Final = r"""[\[({][^\])}]{0,400}?["']"""
_QUOTED: Final = rf"""(?:{_QUOTE}(?!{{{{|\${{)
|(?:[\[({{]\s{{0,40}}(?:(?:{_QUOTE})?[\w-]{{1,40}}(?:{_QUOTE})?\s?:\s{{0,3}})?){{1,3}}{_QUOTE}(?![^"'\n]{{0,40}}["']\s?:))"""
"""A text in quotes, or a bracket whose first value is one; not `{{ NAME }}`, nor `${NAME}`."""
_NAMED: Final = rf"""(?xia)
    (?: (?:{_SURE}|(?P<unsure>{_UNSURE})){_MORE}
        (?P<mark>{_QUOTE})? [`\])]? [ \t]{{0,3}}
        (?:=>|:?=(?!=)|:(?!:)|,[^{{}}]{{0,80}}?{_QUOTE}value{_QUOTE}:) [ \t]{{0,3}} (?!(?:{_QUOTE}(?=\w{{4,5}}["'\\]))?(?:null|none|true|false)\b)
        (?(unsure)(?=(?(more)(?:{_WITHIN}|{_QUOTE})?{_MIXED}
          |(?:{_QUOTED}|(?:{_WITHIN}|(?<==)|(?<=pass:[ ])){_MIXED.replace("12", "6")}|{_MIXED}))))
      | --(?:[\w-]{{1,20}}-)?(?:password|pass|secret|token|api-key)(?:\s{{1,3}}|["'],[ ]?(?=["']))(?!-)
      | (?:bearer|basic)[ ]{{1,3}}(?={_MIXED}) | basicauth(?=\({_QUOTE})
    )
    (?P<quote>{_QUOTE}(?(mark)|(?!\s*[,;:+}}\])])))?
    (?P<value>(?(quote)(?:(?!(?P=quote))(?:\\.|[^\n]))+
      |(?: (?P<open>[\[({{])
         | (?:(?<=cookie:[ ])|(?<=authorization:[ ]))(?:[^\n\r"'`{{}}\[\]\\]|(?<==)\\{{0,3}}"[\w/][^"\n]{{0,512}}")+
         | (?:(?:basic|bearer|token|negotiate|apikey)\s{{1,3}})?[^\s,;&"'`<>(){{}}\[\]\\]+ )))"""
"""A name, its sign and its value: a text in quotes, what opens a list, an object or a call, a line of a header, or a word."""
_BRACKET: Final = re.compile(r"""(?<!\\)"(?:[^"\\\n]|\\.)*+"|[\[\](){}]""")


def redact(text: str, limit: int = MESSAGE_CHARS, *, keep_traceback: bool = False) -> str:
    """
    Returns *text* as an error message for a model: sanitised, secrets and stack traces taken out, at most *limit* characters.

    A secret becomes `[redacted]`, the name before it stays; of a traceback only its last line stays, of a longer message head and tail.
    Only the two ends of a text above 2 x 16,384 characters are looked at. *keep_traceback* is for tools whose very result is one.
    """
    parts = [text] if len(text) <= 2 * SCAN_CHARS else [text[:SCAN_CHARS], text[-SCAN_CHARS:]]
    parts = [without_secrets(sanitise(one) if keep_traceback else untraced(sanitise(one))).strip() for one in parts]
    text = parts[0] if len(parts) == 1 else f"{parts[0][:-EDGE_CHARS]} {CUT} {parts[1][EDGE_CHARS:]}".strip()
    room = max(0, limit - len(CUT) - 2)
    return text if len(text) <= limit else f"{text[: room - room // 3]} {CUT} {text[len(text) - room // 3 :]}"[:limit]


def without_secrets(text: str) -> str:
    """
    Returns *text* with API keys, tokens, passwords, logins in URLs and private keys replaced by `[redacted]`; it is bounded already. JSON
    stays JSON, unless it holds half a private key, or half a text in quotes.
    """
    text = _PRIVATE_KEY.sub(REDACTED, text) if "PRIVATE KEY" in text else text
    text = _LOGIN.sub(f"://{REDACTED}@", text) if "://" in text and "@" in text else text
    text = _USER.sub(rf"\1{REDACTED}", text) if "-u" in text else text
    text = _without_named(text)
    runs = _LONG.findall(text)
    return pattern(_KNOWN).sub(REDACTED, text) if runs and any(map(" ".join(runs).__contains__, _BEGINNINGS)) else text


def _without_named(text: str) -> str:
    parts, at = list[str](), 0
    # To look for small letters is cheaper. No other character becomes two of them.
    for name in pattern(_NAMES).finditer(text.replace("\u0130", "I").lower()):
        match = pattern(_NAMED).match(text, name.start()) if name.start() >= at else None
        if match is not None:
            mark = "" if match["quote"] else match["mark"] or ""
            parts += text[at : match.start("value")], f"{mark}{REDACTED}{mark}"
            at = _closing(text, match.end()) if match["open"] else match.end()
    return "".join((*parts, text[at:])) if parts else text


def _closing(text: str, at: int) -> int:
    """
    Returns where the bracket before *at* is closed, or where *text* ends.
    """
    depth = 1
    for match in _BRACKET.finditer(text, at):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if not depth:
            return match.end()
    return len(text)


def secrets_out(payload: bytes, at: str) -> tuple[Any, list[tuple[str, Any]]]:
    """
    Returns the value of the JSON *payload* without its secrets, and what went: where it was, as a path below *at*, and what stood there.
    Returns (None, []) if there is none.
    """
    text = payload.decode("utf-8", "replace")
    shown = without_secrets(text)
    if shown == text:
        return None, []
    try:
        value = json.loads(shown)
    except ValueError:
        value = REDACTED
    return value, list(_gone(json.loads(text), value, at))


def _gone(before: Any, after: Any, at: str) -> Iterator[tuple[str, Any]]:
    was, stays = (dict(enumerate(one)) if isinstance(one, list) else one for one in (before, after))
    if isinstance(was, dict) and isinstance(stays, dict) and was.keys() == stays.keys():
        for key, member in was.items():
            yield from _gone(member, stays[key], f"{at}.{key}")
    elif before != after and isinstance(before, str) and isinstance(after, str):
        yield at, before.removeprefix(after.partition(REDACTED)[0]).removesuffix(after.rpartition(REDACTED)[2])
    elif before != after:
        yield at, before


TRACEBACK: Final = "Traceback (most recent call last)"
_TRACES: Final = r"""(?mx)^-{20,}\n\ *[A-Z]\w{2,60}\ {2,80}Traceback\ \(most\ recent\ call\ last\)\n(?:.*\n)*(?=.*\S)
    |[ \t]?(?:\+\ Exception\ Group\ |[|]\ )?Traceback\ \(most\ recent\ call\ last\):?(?=[ \t]*\n)
    |^[ |]+[ \t]File\ "[^"\n]{1,1000}",\ line\ \d[^\n]*\n(?:^(?:\ *\|[ \t]{2,}|[ \t]+(?![ \t|]))[^\n]*\n|\n)*
    |^[^\n]*\n{1,3}(?:During\ handling\ of\ the\ above\ exception|The\ above\ exception\ was\ the\ direct\ cause)[^\n]*\n
    |^[ \t]+at\ \S.*(?::\d+\)?|\((?:native|Native\ Method|Unknown\ Source|<anonymous>)\))$\n?|^[ \t]+\.\.\.\ \d+\ more$\n?
    |^[ |]*\+-[+-]*(?:\ \d+\ -+)?$\n?"""
"""Of IPython, of Python (and those before it in a chain), of JavaScript and Java."""
_TRACED: Final = ("Traceback ", ' File "', '\tFile "', "bove exception", " at ", "\tat ", " ... ", "\t... ", "+-")
"""Each of them has one of these."""


def untraced(text: str) -> str:
    """
    Returns *text* without its stack traces: the line stays that names the error that got out.
    """
    text = text if "\n" in text or TRACEBACK not in text else text.replace("\\n", "\n")
    # To look for them all takes as long as reading the rest of a failure.
    traced = "\n" in text and any(word in text for word in _TRACED)
    return pattern(_TRACES).sub("", text) if traced else text
