"""
Text that is fit to be read by a model: no secrets, no stack traces, no control characters, bounded.

Everything is bounded before it is searched, and no pattern can backtrack over an unbounded run. Secrets are found by the shapes that
their issuers document and by the names that people give them; a name covers all that stands in it. A secret without either stays.
"""

import json
import re

from collections.abc import Iterator
from functools import partial
from typing import Any, Final


MESSAGE_CHARS: Final = 500
"""Length of a redacted message in characters, marks included."""
SCAN_CHARS: Final = 16_384
"""Characters looked at from either end of a longer text."""
EDGE_CHARS: Final = 512
"""Left out where such a text was cut, after the search: half a secret has no shape that could be found."""
REDACTED: Final = "[redacted]"
CUT: Final = "[...]"
_SMALL: Final = 256
"""Characters of a part that is looked at together with its neighbours."""
TRACEBACK: Final = "Traceback (most recent call last)"
_CONTROL: Final = {code: None for code in (*range(32), 127) if chr(code) not in "\n\r\t"}
_NOT_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CODES: Final = r"(?:u00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF])|[bf])"
_MAY_ESCAPE: Final = re.compile(r"\\[ubf]")
_CONTROL_CODE: Final = re.compile(rf"\x7f|(?<!\\)(?:\\\\)*+\\{_CODES}")
_ESCAPE: Final = re.compile(rf"\x7f|\\(?:{_CODES}|(.))")
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?')
_KEY: Final = r"""(?sx)-----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY[A-Z ]{0,10}-----.*?(?:-----END\ [^\n]{0,60}|\Z)
|\A.*-----END\ [A-Z0-9 ]{0,40}PRIVATE\ KEY[^\n]{0,15}"""
"""Whole, or without its beginning: the tail of a long text may begin inside of one."""
_ISSUED: Final = r"""(?x)(?:(?<![A-Za-z0-9])|(?<=\\[nrtfb])|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[ux]00[0-9A-Fa-f][0-9A-Fa-f]))(?:sk-[A-Za-z0-9_-]{16,}
| (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,} | whsec_[A-Za-z0-9+/=]{16,} | gh[oprsu]_[A-Za-z0-9]{16,} | github_pat_\w{20,} | gl(?:pat|dt|rt|cbt|ptt)-[\w.-]{16,}
| A(?:KI|SI|GP|RO|ID|NP)A[A-Z0-9]{16} | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{8,} | hooks\.slack\.com/services/[\w/]{8,} | AIza[\w-]{30,}
| ya29\.[\w-]{16,} | GOCSPX-[\w-]{16,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{30,} | SG\.[\w.-]{32,} | gsk_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,}
| pplx-[A-Za-z0-9]{20,} | r8_[A-Za-z0-9]{20,} | tvly-[\w-]{16,} | do[opr]_v1_[a-f0-9]{32,} | dapi[a-f0-9]{32} | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32} | lin_api_\w{20,}
| ntn_\w{20,} | (?:bot)?[0-9]{8,10}:[\w-]{35} | AGE-SECRET-KEY-1[0-9A-Z]{16,} | (?<![\w-])eyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)*)"""
_LOGIN: Final = r"""://(?:[^\s/?#@:"'<>]{0,256}:(?:[^\s/"'<>]{1,256}@|(?!\d{1,5}[/?#])[^\s"'<>@]{1,256}@)|[^\s/?#@:"'<>]{16,256}@)"""
"""In a URL; not the port of `host:8080/a@b`."""
# As it is, or as URLs, JSON and XML write it. A name may go on (`password2`, `secretAccessKey`), but not into another word (`secretary`).
_QUOTE: Final = r"""(?:%2[27]|&quot;|&#3[49];|\\u002[27])?"""
_SIGN: Final = rf"""\\{{0,3}}["'`\])]{{0,2}}{_QUOTE}\s{{0,3}}(?:=>|:=|[:=]|%3[ADad]|\\u003[ADad]|\\x3[ADad]|&#(?:61|58|[xX]3[ADad]);)\s{{0,3}}{_QUOTE}"""
_IS: Final = rf"(?:\d{{1,3}}|[_-][\w-]{{0,24}}|(?-i:[A-Z])\w{{0,24}})?{_SIGN}"
_VALUE: Final = r"""(?:\\{1,3}["'][^"'\\\n]*|"(?:[^"\\\n]|\\.)*|'(?:[^'\\\n]|\\.)*|[^\s,;&"'`<>(){}\[\]\\]+)"""
_NAME: Final = r"(?:pass(?:word|wd|phrase|code)|secret|api[ _-]?key|(?:access|account|private|signing|encryption|subscription)[_-]?key|connection[_-]?string)"
_PART: Final = r"""(?:[\w.:-]{0,24}(?:[_.:-]|(?-i:[a-z](?=[A-Z]))))?(?:pass(?:word|wd|phrase)|secret|(?:api|access|private|secret)[_-]?key|(?:auth|access)[_-]?token)"""
_NAMED: Final = {
    rf"""((?:authorization|authentication){_IS})((?:digest|aws4-hmac-sha256|hawk)\s[^\n\r]*|["']?(?:basic|bearer|token|apikey|negotiate)\s{{1,3}}{_VALUE}|{_VALUE})""": " |  | authorization authentication",
    rf"""(cookie{_IS})((?!\s)["']?[^\n\r"'{{}}\[\]]+)""": " | cookie",
    rf"""({_NAME}{_IS}|(?:\b|(?<=_))pwd{_IS}(?![/~.]))({_VALUE})""": " | pass secret pwd key string",
    rf"""(--(?:[\w-]{{1,20}}-)?(?:password|pass|secret|token|api-key)(?:\s{{1,3}}|["']\s{{0,3}},\s{{0,3}}(?=["'])))({_VALUE})""": " |  | -- | pass secret token key",
    rf"""((?:(?:\bauth|credentials?){_SIGN}|(?:basic|digest)auth)[(\[]\s{{0,3}}["'][^"'\n]{{0,64}}["']\s{{0,3}},\s{{0,3}})(?=["'])({_VALUE})""": " | auth( cred( | cauth tauth",
    rf"""(\b(?:key|name)\\?["']?\s{{0,3}}[:=]\s{{0,3}}\\?["']{_PART}\\?["'](?:\s{{0,3}},?\s{{0,3}}\\?["']?value\\?["']?\s{{0,3}}[:=]\s{{0,3}}(?=\\?["'])|\s{{0,3}}>(?=[^<\s])))(\\["'][^"'\\\n]*|"[^"\n]{{0,200}}|'[^'\n]{{0,200}}|[^<"'\\]{{1,200}})""": "telling |  | value > | passw passphrase secret apikey accesskey privatekey authtoken accesstoken _key -key _token -token",
    rf"""(<{_PART}(?:\s[^<>]{{0,100}})?>(?:<!\[CDATA\[)?)((?:<\w[^<>]{{0,100}}>){{0,9}}[^<\s][^<\]]{{0,200}})(?=\]\]>|</)""": "telling |  | < | passw passphrase secret apikey accesskey privatekey authtoken accesstoken _key -key _token -token",
    rf"""(\Bpass(?<=_pass){_SIGN}|\B(?-i:TOKEN(?<=_TOKEN)|AUTH(?<=_AUTH))["']?=)({_VALUE})""": "telling |  | _pass _token _auth",
    rf"""((?:\bpass(?<!-pass){_SIGN}|token["']?=))({_VALUE})""": "mixed | pass token secret",
    rf"""((?:token|bearer|signature|credentials?|sess(?:ion)?[_-]?id|\bsig|\bauth|[?&]key){_IS}|\b(?:bearer|basic)\s{{1,3}})({_VALUE})""": "random | token bearer sig cred sess auth key secret | bearer basic",
    r"""(\b(?:(?:sshpass|(?:docker|podman|nerdctl|helm registry|oras) login)\b[^\n|;&]{0,80}?\s["']?-p[\s"',]{0,4}|sshpass["'],\s?["']-p["']?,?\s?["']?|(?:mysql|mariadb)(?:dump|admin|import|check|show)?\b(?:["'],\s?["']-p["'],\s?["']|[^\n|;&]{0,80}?\s["']?(?-i:-p))))([^\s"',;|&-][^\s"',;|&]{0,200})""": " |  | -p | sshpass login mysql mariadb",
    r"""((?<![\w-])(?-i:-u|--user)(?:["'],)?[\s=]{0,3}["']?[^\s:"'/]{1,64}:)(?!//)([^\s"'\[][^\s"']{0,255})""": "telling |  | -u",
}
"""
Names and their values, and the form that a value must have: any, one that does not only count or tell how something went, mixed, random.
Headers; cookies; names of secrets; flags; `auth=("user", "...")`; `{"name": "password", "value": "..."}`; XML; `DB_PASS: ...`; `pass`; names that
may mean something else; `mysql -p...`; `curl -u user:...`. What else `-p` may be is left. It pays to look for a pattern if a word of the
second part stands before a sign (with `(`: and a bracket), or one of each further part is in the text at all.
"""
_WAYS: Final = [
    (names, form.strip(), frozenset(before.split()), [words.split() for words in there])
    for names, (form, before, *there) in ((names, way.split("|")) for names, way in _NAMED.items())
]
_HINTS: Final = "auth cookie pass secret key pwd string token bearer sig credential sess basic -p -u".split()  # noqa: SIM905
_GAP: Final = r"(?:\s|\\[a-z]|\\u00[01].){0,12}"
_MARK: Final = r"(?:%2[27]|&quot;|&#3[49];|\\{0,8}u002[27])?"
_SIGNED: Final = re.compile(
    r"(auth|cookie|pass(?!ecret|ess|ig)|secret|pwd|token|bearer|sig|cred|sess(?!ecret|ess|ig)|string(?:(?<=connectionstring)|(?<=connection[_-]string))"
    r"|key(?:(?<=[?&]key)|(?<=(?:api|ess|unt|ate|ing|ion)key)|(?<=(?:api|ess|unt|ate|ing|ion)[ _-]key)))"
    r"(?=[\w-]{0,40}+[\\\"'`\])]{0,16}" + _MARK + _GAP + r"\\{0,8}"
    r"(?:=>|:=|[:=]|%3[ad]|u003[ad]|x3[ad]|&#(?:61|58|x3[ad]);)(" + _GAP + _MARK + r"[{\[(])?)"
)
"""
The beginning of a name before a sign, and what opens behind that: in small letters, also where JSON has escaped the text. `secretoken` is one of a
secret.
"""
_LONG: Final = re.compile(r"[^\x00-$&-*,;<>-^`{-}\x7f]{12,}")
"""Issued secrets, and random values, have so many characters at least: small letters, digits, `_.~+/=%:-`, and all beyond ASCII."""
_ODD: Final = re.compile(r"[0-9]|.{32}")
_PREFIXES: Final = (  # noqa: SIM905
    "sk- sk_ rk_ pk_ whsec_ ghp_ gho_ ghr_ ghs_ ghu_ github_pat_ glpat- gldt- glrt- glcbt- glptt- akia asia agpa aroa aida anpa xox xapp- hooks.slack aiza "
    "ya29. gocspx- hf_ npm_ pypi- sg. gsk_ xai- pplx- r8_ tvly- _v1_ dapi shpat_ shpca_ shppa_ shpss_ lin_api_ ntn_ age-secret eyj"
).split()
"""Of what issuers give out, in small letters; Telegram's has none."""
_MIXED: Final = r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])\S{6,}"
_RANDOM: Final = r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[\w.~+/=%:-]{12,}|[\w.~+/=%-]{32,}"
_OPENS: Final = rf"(?i)(?:({_NAME}s?|\bcredentials?)|\bauth|token|bearer){_IS}(?=[{{\[(])"
_SECRETS: Final = frozenset({"pass", "secret", "pwd", "key", "string"})
_OPENING: Final = frozenset({"pass(", "secret(", "key(", "string(", "cred(", "auth(", "token(", "bearer("})
_INSIDE: Final = re.compile(r"""["'](?=[^"'\s]{0,40}\d)(?=[^"'\s]{0,40}[A-Za-z])[^"'\s]{6,}["'\\]""")
"""A value that may be a secret, where the name may mean something else."""
_BLOCK: Final = rf"""(?im)^([ \t]*(?:- )?["']?[\w.-]{{0,24}}{_NAME}\w{{0,24}}["']?:)[ \t]*\n(?:(?:[ \t]+\S|- ).*\n?)+"""
_TRACES: Final = r"""(?mx)^-{20,}\n\ *[A-Z]\w{2,60}\ {2,80}Traceback\ \(most\ recent\ call\ last\)\n(?:.*\n)*(?=.*\S)
|[ \t]?(?:\+\ Exception\ Group\ |[|]\ )?Traceback\ \(most\ recent\ call\ last\):?(?=[ \t]*\n)
|^[ |]+[ \t]File\ "[^"\n]{1,1000}",\ line\ \d[^\n]*\n(?:^(?:\ *\|[ \t]{2,}|[ \t]+(?![ \t|]))[^\n]*\n|\n)*
|^[^\n]*\n{1,3}(?:During\ handling\ of\ the\ above\ exception|The\ above\ exception\ was\ the\ direct\ cause)[^\n]*\n
|^[ \t]+at\ \S.*(?::\d+\)?|\((?:native|Native\ Method|Unknown\ Source|<anonymous>)\))$\n?|^[ \t]+\.\.\.\ \d+\ more$\n?|^[ |]*\+-[+-]*(?:\ \d+\ -+)?$\n?"""
"""Stack traces of IPython, of Python (and those before it in a chain), of JavaScript and Java."""
_TRACED: Final = ("Traceback ", ' File "', '\tFile "', "bove exception", " at ", "\tat ", " ... ", "\t... ", "+-")
"""Each of them has one of these."""


def sanitise(text: str) -> str:
    """
    Returns *text* without NUL, DEL and the other ASCII control characters; newline, carriage return and tab stay.

    Surrogates that form a pair become their character, lone ones U+FFFD, so that the answer always encodes to UTF-8.
    """
    if not text.isascii() and _NOT_TEXT.search(text) is not None:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").translate(_CONTROL)
    return text.translate(_CONTROL) if text.isascii() else text


def cleaned(text: str) -> str:
    """
    Returns the JSON *text* whose strings hold no NUL, DEL or other ASCII control character but newline, carriage return
    and tab.

    The names of members stay, so that no two become one; what is no character there is an escape, as JSON writes it.
    """
    # Most text has no backslash, or one before a letter of none; to look for one character is next to nothing.
    if "\x7f" not in text and ("\\" not in text or _MAY_ESCAPE.search(text) is None):
        return text
    return text if _CONTROL_CODE.search(text) is None else _STRING.sub(_without_control, text)


def _without_control(string: re.Match[str]) -> str:
    body, colon = string[1], string[2] or ""
    said = body.replace("\x7f", r"\u007f") if colon else _ESCAPE.sub(_harmless, body)
    return f'"{said}"{colon}'


def _harmless(escape: re.Match[str]) -> str:
    return f"\\{escape[1]}" if escape[1] else ""


def redact(text: str, limit: int = MESSAGE_CHARS, *, keep_traceback: bool = False) -> str:
    """
    Returns *text* as an error message for a model: sanitised, secrets and stack traces taken out, at most *limit* characters.

    A secret becomes `[redacted]`, the name before it stays; of a traceback only its last line stays, of a longer message head and tail.
    Only the two ends of a text above 2 x 16,384 characters are looked at. *keep_traceback* is for tools whose very result is one.
    """
    ends = [text] if len(text) <= 2 * SCAN_CHARS else [text[:SCAN_CHARS], text[-SCAN_CHARS:]]
    ends = [without_secrets(sanitise(end) if keep_traceback else untraced(sanitise(end))).strip() for end in ends]
    text = ends[0] if len(ends) == 1 else f"{ends[0][:-EDGE_CHARS]} {CUT} {ends[1][EDGE_CHARS:]}".strip()
    room = max(0, limit - len(CUT) - 2)
    return text if len(text) <= limit else f"{text[: room - room // 3]} {CUT} {text[len(text) - room // 3 :]}"[:limit]


def without_secrets(text: str) -> str:
    """
    Returns *text* with API keys, tokens, passwords, logins in URLs and private keys replaced by `[redacted]`; it is bounded already.
    """
    text = re.sub(_KEY, REDACTED, text) if "PRIVATE KEY" in text else text
    text = re.sub(_LOGIN, f"://{REDACTED}@", text) if "://" in text and "@" in text else text
    small = text.lower()
    runs = _LONG.findall(small)
    if _has(small, _HINTS):
        signed = _signed(small)
        text = _nested(text, small, signed)
        for names, form, before, there in _WAYS:
            if _pays(small, signed, before, there) and (form != "random" or any(map(_ODD.search, runs))):
                text = re.sub(names, partial(_hidden, form), text, flags=re.IGNORECASE)
    if _may_be_issued(runs):
        text = re.sub(_ISSUED, REDACTED, text)
    return text


def _signed(small: str) -> set[str]:
    found = _SIGNED.findall(small)
    return {name for name, _ in found} | {name + "(" for name, opens in found if opens}


def _pays(small: str, signed: set[str], before: frozenset[str], there: list[list[str]]) -> bool:
    return not signed.isdisjoint(before) or (bool(there) and all(_has(small, words) for words in there))


def _has(text: str, words: list[str]) -> bool:
    return any(map(text.__contains__, words))


def may_hold_secrets(payload: bytes) -> bool:
    """
    Returns whether it pays to look for secrets in *payload*, a text in UTF-8: cheaper than to look.
    """
    small = payload.decode("utf-8", "replace").lower()
    if ("://" in small and "@" in small) or "private key" in small:
        return True
    if _has(small, _HINTS):
        signed = _signed(small)
        if signed or any(_pays(small, signed, before, there) for _, _, before, there in _WAYS):
            return True
    return _may_be_issued(_LONG.findall(small))


def _may_be_issued(runs: list[str]) -> bool:
    if not runs:
        return False
    text = " ".join(runs)
    # Telegram's begin with digits.
    return _has(text, _PREFIXES) or re.search(r"[0-9]{8}:", text) is not None


def secrets_out(value: Any, at: str, gone: list[tuple[str, Any]]) -> Any:
    """
    Returns *value*, plain JSON, without its secrets: in texts, and below names of secrets. Their places below *at* and what stood there
    go into *gone*. What shows a secret only as a whole (`["--password", "..."]`) goes as a whole.
    """
    if isinstance(value, str):
        shown = without_secrets(value)
        gone += ((at, part) for part in _parts_gone(value, shown) if shown != value)
        return shown
    if not isinstance(value, dict | list) or not value:
        return value
    made = {
        key: _member(key, each, f"{at}.{key}", gone)
        for key, each in (value.items() if isinstance(value, dict) else enumerate(value))
    }
    # As a whole by its small parts: the large ones are without secrets already.
    seen = {
        key: each if not isinstance(each, dict | list) and len(str(each)) <= _SMALL else None
        for key, each in made.items()
    }
    text = json.dumps(seen if isinstance(value, dict) else list(seen.values()), ensure_ascii=False)
    if may_hold_secrets(text.encode("utf-8", "replace")) and without_secrets(text) != text:
        gone.append((at, value))
        return REDACTED
    return made if isinstance(value, dict) else list(made.values())


def _member(key: Any, value: Any, at: str, gone: list[tuple[str, Any]]) -> Any:
    if (
        isinstance(key, str)
        and value not in (None, "", [], {})
        and not isinstance(value, bool)
        and _has(key.lower(), _HINTS)
    ):
        name = f"{json.dumps(key, ensure_ascii=False)}: "
        if re.match(r'"?\[redacted\]', without_secrets(name + json.dumps(value, ensure_ascii=False))[len(name) :]):
            gone.append((at, value))
            return REDACTED
    return secrets_out(value, at, gone)


def _parts_gone(text: str, shown: str) -> Iterator[str]:
    first, *parts = shown.split(REDACTED)
    rest = text.removeprefix(first)
    for part in parts:
        gone, _, rest = rest.partition(part) if part else (rest, "", "")
        yield gone


def _hidden(form: str, found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    bare = value.strip("\\\"'")
    quote = value[: len(value) - len(value.lstrip("\\\"'"))]
    hides = len(value) > len(quote)
    if form == "telling" or (form == "mixed" and value != bare and "pass" in name.lower()):
        hides = hides and re.fullmatch(r"(?i)[\d.]{1,9}%?|true|false|none|null|yes|no|ok", bare) is None
    elif form:
        hides = re.fullmatch(_MIXED if form == "mixed" else _RANDOM, bare) is not None
    return f"{name}{quote}{REDACTED}" if hides else found[0]


def _nested(text: str, small: str, signed: set[str]) -> str:
    """
    Returns *text* with all that stands in an object, a list, an element or an indented block of a secret's name replaced.
    """
    if signed.isdisjoint(_OPENING):
        return _without_blocks(text, small, signed)
    parts, at, open_at, closed = list[str](), 0, list[int](), dict[int, int]()
    for bracket in re.finditer(r"[{}\[\]()]", text):
        if bracket[0] in "{[(":
            open_at.append(bracket.start())
        elif open_at:
            closed[open_at.pop()] = bracket.end()
    for found in re.finditer(_OPENS, text):
        end = closed.get(found.end(), len(text))
        if found.start() >= at and (found[1] or _INSIDE.search(text, found.end(), min(end, found.end() + 400))):
            parts += text[at : found.end()], REDACTED
            at = end
    return _without_blocks("".join((*parts, text[at:])), small, signed)


def _without_blocks(text: str, small: str, signed: set[str]) -> str:
    pays = "\n" in small and not signed.isdisjoint(_SECRETS)
    return re.sub(_BLOCK, rf"\1 {REDACTED}\n", text) if pays else text


def untraced(text: str) -> str:
    """
    Returns *text* without its stack traces: the line stays that names the error that got out.
    """
    text = text if "\n" in text or TRACEBACK not in text else text.replace("\\n", "\n")
    # To look for them all takes as long as reading the rest of a failure.
    traced = "\n" in text and any(word in text for word in _TRACED)
    return re.sub(_TRACES, "", text) if traced else text
