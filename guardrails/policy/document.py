"""
A policy file as the arguments of `Policy`, and its settings in place of those that it extends.

Promises, each with a test:

* A file that is plainly right is checked without pydantic, whose import and schema take longer than all the rest of a start; the result is
  what pydantic makes of it. Everything else, each mistake among it, is pydantic's to say.
* Settings that are each valid and do not go together are told where they stand, also those of a rule with those of the policy.
* A file that a setting names is found beside the policy file that names it.
"""

import json
import os

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.chain import Rule
from guardrails.core.guards import GUARDS, Kinds, kinds_of
from guardrails.core.guards.base import Guard
from guardrails.core.tools.tool import REPEATS
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.plain_types import UnsureError, fitted
from guardrails.core.values.units import matcher
from guardrails.core.values.usage import Price

from .check import tuples, wrong_code, wrong_numbers, wrong_together
from .file import Document, Mistake, Node, Position, child, find_mistakes, inner, numbered, plain, read, rules
from .schema import adapter, json_schema, plain_type


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
    classes = [each if isinstance(each, type) else type(each) for each in given]
    own = tuple(dict.fromkeys(cls for cls in classes if issubclass(cls, Guard)))
    kinds = kinds_of(own)
    document = read(source, aliases_of(kinds))
    root = document.root
    for guard in made:
        written = root.value.get(guard.name) if root is not None and isinstance(root.value, dict) else None
        if written is not None and type(guard) not in GUARDS:
            said = f"`{guard.name}` is given in code too: give its class there, or leave this out"
            document.mistakes.append(Mistake(written.key, said))
    document.mistakes += _wrong_words(root, own)
    data, root = _checked(document, kinds)
    _place_files(data, root, kinds)
    arguments = _arguments(data, kinds)
    mistakes = list(_wrong_together(arguments, root, made, kinds))
    if mistakes:
        raise PolicyError([str(mistake) for mistake in mistakes])
    arguments["sources"] = {os.path.abspath(name): content for name, content in document.files.items()}  # noqa: PTH100
    arguments["guards"] += [guard for guard in given if not (isinstance(guard, type) and issubclass(guard, Guard))]
    return {"name": str(source), "kinds": own, **arguments}


def aliases_of(kinds: Kinds) -> dict[str, dict[str, str]]:
    """
    Returns further names of settings, by guard.
    """
    return {cls.name: cls.aliases for cls in kinds if cls.aliases}


def _checked(document: Document, kinds: Kinds) -> tuple[dict[str, Any], Node]:
    """
    Returns the checked settings of *document*, and their tree. Raises PolicyError with every mistake, file by file.
    """
    parts = [part for part in document.parts if part is not document.root]
    if document.root is not None and not document.mistakes:
        try:
            kind = plain_type(kinds)
            for part in parts:
                fitted(kind, plain(part))
            return fitted(kind, plain(document.root)), document.root
        except UnsureError:
            pass
    from pydantic import PydanticUserError, ValidationError

    failures: list[tuple[Node, list[Any]]] = []
    for part in [*parts, *([] if document.root is None else [document.root])]:
        try:
            data = adapter(kinds).validate_json(json.dumps(plain(part)))
        except ValidationError as error:
            failures.append((part, list(error.errors(include_url=False))))
    mistakes = list(document.mistakes)
    try:
        schema = json_schema(kinds) if failures else {}
    except PydanticUserError:
        schema = {}
    for part, errors in failures:
        whole = part is document.root
        if whole and len(failures) > 1:
            # Each rule was checked in its own file.
            found = [each for each in errors if each["loc"][:1] != ("tools",) or len(each["loc"]) == 1]
        else:
            found = errors
        mistakes += find_mistakes(found, part, schema, partial=not whole)
    if mistakes or document.root is None:
        order = {id(source): place for place, source in enumerate(document.sources)}
        ordered = sorted(
            dict.fromkeys(mistakes), key=lambda m: (order[id(m.position.source)], *m.position[1:], m.message)
        )
        raise PolicyError([str(mistake) for mistake in ordered])
    return data, document.root


def _wrong_words(root: Node | None, own: Iterable[type[Guard]]) -> Iterator[Mistake]:
    """
    Returns the mistakes in a policy's own words: codes that no guard says, numbers that a message does not have.
    """
    messages = inner(root, "messages")
    for written, entry in messages.value.items() if messages is not None and isinstance(messages.value, dict) else ():
        scope, _, rest = written.partition(".")
        code = written if inner(root, "scopes", scope) is None else rest
        wrong = wrong_code(code, own)
        if wrong:
            said = wrong.replace(code, written, 1)
            yield Mistake(entry.key, f"messages.{written}: {said}")
        found = [] if wrong else wrong_numbers(code, plain(entry.node), own)
        if found:
            yield Mistake(entry.place, f"messages.{written}: {'; '.join(found)}")


def _place_files(data: dict[str, Any], root: Node, kinds: Kinds) -> None:
    """
    Write whole paths into *data*, the checked settings of *root*, for each file that a guard of these *kinds* names.
    """
    places = [(data, root), *zip(data.get("tools", ()), rules(root), strict=True)]
    places += [(own, node) for scope, own in data.get("scopes", {}).items() if (node := inner(root, "scopes", scope))]
    for cls in kinds:
        for setting in cls.files:
            for settings, node in places:
                own, named = settings.get(cls.name), inner(node, cls.name, setting)
                if isinstance(own, dict) and own.get(setting) and named is not None:
                    # Merged settings come from several files: each value knows its own.
                    own[setting] = str(Path(named.position.source.name).absolute().parent / own[setting])


def _arguments(data: dict[str, Any], kinds: Kinds) -> dict[str, Any]:
    made: dict[str, Any] = {key: data[key] for key in _AS_WRITTEN if key in data}
    made["guards"] = _made(data, kinds)
    made["prices"] = {model: Price(**price) for model, price in data.get("prices", {}).items()}
    made["scopes"] = {name: _made(own, kinds) for name, own in data.get("scopes", {}).items()}
    made["rules"] = [_rule_of(dict(entry), kinds) for entry in data.get("tools", [])]
    return made


def _made(data: dict[str, Any], kinds: Kinds) -> list[Guard]:
    def settings(cls: type[Guard]) -> dict[str, Any]:
        own = data[cls.name]
        return own if isinstance(own, dict) else {str(cls.listed): own}

    return [cls(**tuples(settings(cls))) for cls in kinds if cls.name in data]


def _rule_of(entry: dict[str, Any], kinds: Kinds) -> Rule:
    match, mode, on_error = entry.pop("match"), entry.pop("mode", None), entry.pop("on_error", None)
    guards = {cls.name: tuples(entry.pop(cls.name)) for cls in kinds if isinstance(entry.get(cls.name), dict)}
    patterns = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=patterns, declared=tuples(entry), guards=guards, mode=mode, on_error=on_error)


def _wrong_together(said: dict[str, Any], root: Node, made: Iterable[Guard], kinds: Kinds) -> Iterator[Mistake]:
    """
    Returns the mistakes of settings that are each valid by themselves, each with those that are not written beside them.
    """
    named: dict[str, Guard] = {guard.name: guard for guard in (*made, *said["guards"])}
    classes = {cls.name: cls for cls in kinds}
    places: list[tuple[str, Node | None, str, Iterable[Guard]]]
    places = [("", root, guard.name, (guard,)) for guard in said["guards"]]
    for scope, guards in said["scopes"].items():
        node = inner(root, "scopes", scope)
        places += [(f"scopes.{scope}.", node, guard.name, (guard,)) for guard in guards]
    for rule, (number, node) in zip(said["rules"], numbered(rules(root)), strict=True):
        for name, own in rule.guards.items():
            places.append((f"tools.{number}.", node, name, classes[name].ruled(named.get(name), own)))
    for where, node, name, guards in places:
        written: Any = None if node is None else node.value
        for wrong in wrong_together(guards):
            yield Mistake(written[name].place, where + wrong)


# The settings of a file in place of those that it extends


def overridden(document: Document) -> Iterator[str]:
    """
    Returns the overrides that the named file of the valid *document* makes, each as `file:line:column: message`.

    Globs of two rules are compared as texts, so that not all that overlap are seen.
    """
    if document.below is None:
        return
    own, below = document.parts[0], document.below
    yield from _differing("", own, below)
    tools = inner(own, "tools")
    if tools is not None and tools.replaces:
        files = ", ".join(dict.fromkeys(Path(rule.position.source.name).name for rule in rules(below)))
        yield _at(tools.position, f"tools: !replace drops {len(rules(below))} rules of {files}")
        return
    for number, rule in enumerate(rules(own)):
        for other in rules(below):
            ours, theirs = _globs(rule), _globs(other)
            if any(map(matcher(theirs), ours)) or any(map(matcher(ours), theirs)):
                yield from _differing(f"tools.{number}.", rule, other)


def renamed(document: Document) -> list[str]:
    """
    Returns the older words of the named file that still work, each with the one that stands for it now.
    """
    return [
        _at(entry.key, f"tools.{number}.{old}: {old} is now `repeats: {now}`")
        for number, rule in enumerate(rules(document.parts[0]))
        for old, now in REPEATS.items()
        if (entry := child(rule, old)) is not None
    ]


def _differing(where: str, own: Node, below: Node) -> Iterator[str]:
    """
    Returns each setting that both maps have, with another value.
    """
    for key, entry in own.value.items() if isinstance(own.value, dict) else ():
        other = child(below, key)
        if other is None or (not where and key == "tools") or key == "match":
            continue
        if isinstance(entry.node.value, dict) and isinstance(other.node.value, dict):
            yield from _differing(f"{where}{key}.", entry.node, other.node)
        elif plain(entry.node) != plain(other.node):
            place = f"{Path(other.key.source.name).name}:{other.key.line}"
            yield _at(entry.key, f"{where}{key}: {_shown(entry.node)} overrides {_shown(other.node)} of {place}")


def _at(place: Position, message: str) -> str:
    return f"{place.source.name}:{place.line}:{place.column}: {message}"


def _shown(node: Node) -> str:
    if isinstance(node.value, list):
        return f"a list of {len(node.value)}"
    return "a map" if isinstance(node.value, dict) else node.written or "nothing"


def _globs(rule: Node) -> tuple[str, ...]:
    written = plain(rule)["match"]
    return (written,) if isinstance(written, str) else tuple(written)
