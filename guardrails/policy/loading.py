"""
A policy file, or a shipped policy, as the arguments of `Policy`.
"""

import os

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Any, Final

from guardrails.core.chain import Rule
from guardrails.core.guards import GUARDS, Kinds, kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.plain_types import UnsureError, fitted
from guardrails.core.values.usage import Price

from .file import Document, read, validate
from .file.document import adapter, document_type, other_names
from .file.extends import rules
from .file.folder import inner, place_files
from .file.yaml_position import Mistake, Node, numbered, plain


_AS_WRITTEN: Final = ("mode", "stop", "on_error", "by_name", "envelope", "fields", "messages")


def load_document(source: str | PathLike[str], guards: Iterable[Guard | type[Guard]] = ()) -> dict[str, Any]:
    """
    Returns the arguments for `Policy` that a file, or a shipped policy, stands for. The key `sources` lists the files
    that were read. The *guards* are a person's own: instances are added, and for classes the file says whether and how
    they stand.

    Raises PolicyError with every mistake.
    """
    given = list(guards)
    made = [guard for guard in given if isinstance(guard, Guard)]
    own = tuple(dict.fromkeys(guard if isinstance(guard, type) else type(guard) for guard in given if _is_guard(guard)))
    document = read(source, other_names=other_names(own))
    if document.root is not None:
        document.mistakes += _given_twice(document.root, made)
    try:
        data = _plainly_right(document, own)
    except UnsureError:
        data = validate(document, adapter(own))
    kinds = kinds_of(own)
    if document.root is not None:
        place_files(data, document.root, kinds)
    said = settings(data, kinds)
    mistakes = [] if document.root is None else list(_wrong_together(said, document.root, [*made, *kinds]))
    if mistakes:
        raise PolicyError([str(mistake) for mistake in mistakes])
    said["sources"] = {os.path.abspath(name): content for name, content in document.files.items()}  # noqa: PTH100
    said["guards"] += [guard for guard in given if not (isinstance(guard, type) and issubclass(guard, Guard))]
    return {"name": str(source), "kinds": own, **said}


def settings(data: dict[str, Any], kinds: Kinds = GUARDS) -> dict[str, Any]:
    """
    Returns a checked document as arguments for `Policy`.
    """
    made: dict[str, Any] = {
        "guards": [cls(**_tuples(_named(cls, data[cls.name]))) for cls in kinds if cls.name in data]
    }
    for key in _AS_WRITTEN:
        if key in data:
            made[key] = data[key]
    made["prices"] = {model: Price(**price) for model, price in data.get("prices", {}).items()}
    made["scopes"] = {
        name: [cls(**_tuples(own[cls.name])) for cls in kinds if cls.name in own]
        for name, own in data.get("scopes", {}).items()
    }
    made["rules"] = [_rule(entry, kinds) for entry in data.get("tools", [])]
    return made


def _named(cls: type[Guard], written: Any) -> dict[str, Any]:
    """
    The settings of a guard where a list may stand for one of them.
    """
    return written if isinstance(written, dict) else {str(cls.listed): written}


def _rule(entry: dict[str, Any], kinds: Kinds) -> Rule:
    entry = dict(entry)
    match = entry.pop("match")
    guards = {cls.name: _tuples(entry.pop(cls.name)) for cls in kinds if isinstance(entry.get(cls.name), dict)}
    mode, on_error = entry.pop("mode", None), entry.pop("on_error", None)
    patterns = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=patterns, declared=_tuples(entry), guards=guards, mode=mode, on_error=on_error)


def _tuples(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}


def _is_guard(given: object) -> bool:
    return isinstance(given, Guard) or (isinstance(given, type) and issubclass(given, Guard))


def _wrong_together(said: dict[str, Any], root: Node, given: Iterable[Guard | type[Guard]]) -> Iterator[Mistake]:
    """
    Returns the mistakes of settings that are each valid by themselves, each with those that are not written beside
    them.

    *given* are the guards made in code and the classes that rules may set.
    """
    from .check import wrong_together

    made = {guard.name: guard for guard in (*given, *said["guards"]) if isinstance(guard, Guard)}
    kinds = {cls.name: cls for cls in given if isinstance(cls, type)}
    places: list[tuple[str, Node | None, str, Iterable[Guard]]] = [
        ("", root, guard.name, (guard,)) for guard in said["guards"]
    ]
    for scope, guards in said["scopes"].items():
        node = inner(inner(root, "scopes"), scope)
        places += [(f"scopes.{scope}.", node, guard.name, (guard,)) for guard in guards]
    for rule, (number, node) in zip(said["rules"], numbered(rules(root)), strict=True):
        for name, own in rule.guards.items():
            places.append((f"tools.{number}.", node, name, kinds[name].ruled(made.get(name), own)))
    for where, node, name, guards in places:
        written: Any = None if node is None else node.value
        for wrong in wrong_together(guards):
            yield Mistake(written[name].place, where + wrong)


def _given_twice(root: Node, guards: Iterable[Guard]) -> list[Mistake]:
    written = root.value if isinstance(root.value, dict) else {}
    return [
        Mistake(
            written[guard.name].key, f"`{guard.name}` is given in code too: give its class there, or leave this out"
        )
        for guard in guards
        if guard.name in written and type(guard) not in GUARDS
    ]


def _plainly_right(document: Document, own: tuple[type[Guard], ...]) -> Any:
    """
    Returns the value that `validate` makes of *document*. Raises UnsureError if pydantic has to be asked, as for the
    mistakes of a document.
    """
    if document.mistakes or document.root is None:
        raise UnsureError
    kind = document_type(own)
    for part in document.parts:
        if part is not document.root:
            fitted(kind, plain(part), written=True)
    return fitted(kind, document.data, written=True)
