"""
Names of sessions and of what they belong to, checked before anything is done with them.
"""

from typing import Final

from .errors import SessionError


MAX_BYTES: Final = 256
SCOPES: Final = "/"
"""The beginning of the keys of scopes in a store; no session's id begins so."""
_UNSEEN: Final = frozenset({"Cf", "Zl", "Zp"})
_JOINERS: Final = "\u200c\u200d"
"""Marks that words of some scripts and pictures are spelt with."""


def checked_id(name: str, what: str = "a session id") -> str:
    """
    Returns *name*, if it may name a session; *what* is the thing that is named here by the same rules.

    Raises SessionError if it is empty, longer than 256 bytes, or text that is not valid Unicode. It must not hold `..`,
    a path separator, NUL, a control character, a mark of direction or another invisible mark.
    """
    if not isinstance(name, str):
        raise SessionError(f"{what} is text, not {type(name).__name__}")
    if not name.strip():
        raise SessionError(f"{what} must not be empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise SessionError(f"{what} must be valid Unicode") from None
    if size > MAX_BYTES:
        raise SessionError(f"{what} has at most {MAX_BYTES} bytes, not {size}")
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for char in name):
        raise SessionError(f"{what} must not hold control characters")
    if not name.isascii() and any(map(_is_unseen, name)):
        raise SessionError(f"{what} must not hold characters that are not seen or turn the text around")
    for bad in ("..", "/", "\\"):
        if bad in name:
            raise SessionError(f"{what} must not hold `{bad}`: `{name}`")
    return name


def _is_unseen(char: str) -> bool:
    """
    Returns whether *char* changes how other text is shown, or shows nothing; two such names look the same.
    """
    from unicodedata import category

    return category(char) in _UNSEEN and char not in _JOINERS


def session_name(given: object) -> str:
    """
    Returns the name of the session of a host's thread, run or user *given*: its text, if it may name a session. All
    else becomes what is left of it, `~` and a hash of the whole, so that two threads never share a session.
    """
    text = given if isinstance(given, str) else str(given)
    try:
        return checked_id(text)
    except SessionError:
        from hashlib import blake2b  # and with it OpenSSL: 5 ms

        kept = "".join(char if char.isascii() and (char.isalnum() or char in "-_:@") else "_" for char in text[:64])
        return f"{kept}~{blake2b(text.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def scope_key(scope: str, checked: str) -> str:
    """
    Returns the key under which a store keeps the shared use of the sessions of *scope* with the *checked* id.
    """
    return f"{SCOPES}{scope}/{checked}"


def whose(key: str) -> str:
    """
    Returns the session, or the scope, whose state a store keeps by *key*, in words.
    """
    scope, _, own = key.removeprefix(SCOPES).partition("/")
    return f"the scope `{scope}` of `{own}`" if key.startswith(SCOPES) else f"`{key}`"
