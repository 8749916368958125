"""
Conditions and amounts that people write in CEL, the language of Kubernetes and of agent gateways.

An expression sees `args`, the arguments of a call, and `tool`, its name. It is compiled once, and can be held to the schema of a tool. Numbers
that a schema calls `number` are doubles, and may be compared with whole ones.
"""

import re

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from .caches import pattern
from .errors import needs
from .schema import suggestion


Kind = Literal["true or false", "a number"]
_ERROR: Final = pattern(r"ERROR: <input>:(\d+:\d+): (.*)")
_NUMBERS: Final = pattern(r"overload for '_(?:[<>]=?|[!=]=)_' applied to '\((?:int|double), (?:int|double)\)'")
_TEXT: Final = pattern(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_PATH: Final = pattern(r"args(?:\.[A-Za-z_]\w*)+")
_HAS: Final = pattern(r"\bhas\(\s*(args(?:\.\w+)+)\s*\)")
_DECIMAL: Final = pattern(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
_NOT: Final = pattern(rf"{_TEXT.pattern}|\bnot(?=\s+[\w.]+\()")
_WORDS: Final = {"not": "!", "and": "&&", "or": "||"}


class Expression:
    """
    An expression of CEL whose value is of the *kind*. Raises MissingExtra without the package.
    """

    def __init__(self, text: str, kind: Kind = "true or false") -> None:
        self.kind = kind
        cel = _library()
        self._env = cel.NewEnv(variables=_variables())
        # A person who writes `not` before a call can mean nothing else. In as many characters, so that columns stay.
        self.text = text = _NOT.sub(lambda one: "!  " if one[0] == "not" else one[0], text)
        self.faults = self._faults(self._env, text)
        """What is wrong with it, whatever the tool."""
        self.path = text.removeprefix("args.") if _PATH.fullmatch(text) else None
        """Of an argument by itself, as most sums are: that is no work for CEL."""
        # Its checker knows no comparison of a whole number with a double, as its evaluation does.
        self._program = None if self.faults else self._env.compile(text, disable_check=True)

    def value(self, arguments: Mapping[str, Any], tool: str, doubles: frozenset[str]) -> Any:
        """
        Returns its value for *arguments*, as JSON has them; those whose names are in *doubles* are no whole numbers. Raises ValueError if
        there is none.
        """
        numbers = {name: float(arguments[name]) for name in doubles & arguments.keys() if type(arguments[name]) is int}
        given = {"args": {**arguments, **numbers}, "tool": tool}
        return self.fit(None if self._program is None else self._program.eval(data=given).value())

    def fit(self, made: Any) -> Any:
        """
        Returns the value that was *made* of it. Raises ValueError if it is not of its kind.
        """
        if (type(made) is bool) if self.kind == "true or false" else _is_amount(made):
            return made
        raise ValueError(f"`{self.text}` is not {self.kind}: {str(made)[:200]}")

    def faults_for(self, schema: Mapping[str, Any]) -> Iterator[str]:
        """
        Returns what is wrong with it for a tool whose arguments are of this JSON *schema*.
        """
        objects = {} if self.faults else dict(_objects("args", schema))
        if not objects:
            return
        yield from unknown_names(self.text, schema)
        types = {f"{place}.{n}": _type(one) for place, each in objects.items() for n, one in each["properties"].items()}
        text = _HAS.sub(lambda has: "true".ljust(len(has[0])), self.text)
        yield from self._faults(_library().NewEnv(variables=_variables() | types), text)

    def _faults(self, env: Any, text: str) -> list[str]:
        try:
            kind = env.compile(text).return_type().name()
        except RuntimeError as error:
            errors = ((place, words) for place, words in _ERROR.findall(str(error)) if not _NUMBERS.search(words))
            return [f"at {place}: {_suggested(words, text)}" for place, words in errors]
        fits = {"true or false": ("BOOL", "DYN"), "a number": ("INT", "UINT", "DOUBLE", "DYN")}[self.kind]
        return [] if kind in fits else [f"`{text}` is not {self.kind}, but {kind.lower()}"]


def _is_amount(value: object) -> bool:
    # A decimal number is recorded as text.
    return type(value) in (int, float) or (isinstance(value, str) and _DECIMAL.fullmatch(value) is not None)


def _suggested(error_text: str, text: str) -> str:
    bare = _TEXT.sub("", text)
    words = [f"`{sign}` for `{word}`" for word, sign in _WORDS.items() if re.search(rf"\b{word}\b", bare)]
    if words:
        return f"{error_text}: CEL writes {', '.join(words)}"
    unknown = re.match(r"undeclared reference to '(\w+)'", error_text)
    if unknown and re.search(rf"(?<![.\w]){unknown[1]}(?!\s*\()", bare):
        return f"no `{unknown[1]}` here: an argument is `args.{unknown[1]}`, the tool's name `tool`"
    return error_text


@cache
def _library() -> Any:
    with needs("cel", "a rule with `when` or `sum`"):
        from cel_expr_python import cel
    return cel


def _variables() -> dict[str, Any]:
    kinds = _library().Type
    return {"args": kinds.Map(kinds.STRING, kinds.DYN), "tool": kinds.STRING}


def unknown_names(text: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """
    Returns what of the arguments that an expression names is none of this JSON *schema*.
    """
    bare = _TEXT.sub("", text)
    # A rule about many tools may ask for what only some of them have.
    asked = {has[1] for has in _HAS.finditer(bare)}
    for place, one in _objects("args", schema):
        known, may_be_more = one["properties"], one.get("additionalProperties", place != "args") is not False
        for name in re.findall(rf"\b{re.escape(place)}\.(\w+)\b(?!\s*\()", bare):
            if not (name in known or f"{place}.{name}" in asked or may_be_more):
                yield f"no argument `{name}`{suggestion(name, list(known))}"


def _objects(place: str, schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """
    Returns the objects whose properties a schema names, by their places.
    """
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    if known and isinstance(known, Mapping):
        yield place, schema
        for name, one in known.items():
            yield from _objects(f"{place}.{name}", one)


def _type(schema: Any) -> Any:
    kinds, kind = _library().Type, schema.get("type") if isinstance(schema, Mapping) else None
    plain = {"string": kinds.STRING, "boolean": kinds.BOOL, "integer": kinds.INT, "number": kinds.DOUBLE}
    return plain.get(kind, kinds.DYN) if isinstance(kind, str) else kinds.DYN
