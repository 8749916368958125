"""
The work that a check would be. It is bounded before the check begins, since nothing can stop it on its way.

Checkers try all alternatives of a union, and all of those inside of each again. So a few nested objects that fit none are a
million errors, each of which is built before the first is told.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from .schema import target


LARGE: Final = 10_000
"""Values in arguments from which on not all that may be wrong with them is looked for."""
_ALL_OF: Final = ("allOf", "anyOf", "oneOf")
_ONE: Final = ("not", "if", "then", "else")
_NAMED: Final = ("dependentSchemas", "dependencies")
_OF_FIELDS: Final = ("dependentRequired", "dependencies")
_OF_OBJECTS: Final = ("unevaluatedProperties",)
_OF_ARRAYS: Final = ("additionalItems", "contains", "unevaluatedItems")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class Visits:
    """
    The visits that a check without a memory makes: of each schema to each value that it is tried on.

    *tagged*: of a union with a `discriminator` only the alternative that it names is tried.
    """

    __slots__ = ("_root", "_tagged", "has_unions", "recursive")

    def __init__(self, schema: Mapping[str, Any], *, tagged: bool = False) -> None:
        self._root = schema
        self._tagged = tagged
        self.has_unions = any(word in node for node in _nodes(schema) for word in ("anyOf", "oneOf"))
        self.recursive = any(word in node for node in _nodes(schema) for word in _REFERENCES) and self._circles()
        """Whether a schema of it stands inside of itself: in any other the work is at most its size times the values'."""

    def of(self, value: object, most: int | None = None) -> tuple[int, int] | None:
        """
        Returns how many visits a check of *value* makes, and in how many steps they were counted. Each pair of a schema
        and a value is one visit. Returns None if these are more than *most*.
        """
        known: dict[tuple[int, object], int] = {}
        stack: list[_Counted] = [_Counted(None, iter([(self._root, value)]))]
        steps = 0

        while True:
            last = stack[-1]

            for node, part in last.pairs:
                steps += 1

                if most is not None and steps > most:
                    return None

                kind = type(part)
                key = id(node), id(part) if kind is dict or kind is list else kind

                if not isinstance(node, dict):
                    last.visits += 1
                elif key in known:
                    last.visits += known[key]
                else:
                    known[key] = 0  # what leads back to itself is tried once
                    stack.append(_Counted(key, self._pairs(node, part), 1 if self._tagged else 1 + _lacks(node, part)))
                    break
            else:
                stack.pop()

                if last.key is None:
                    return last.visits, steps

                known[last.key] = last.visits
                stack[-1].visits += last.visits

    def _pairs(self, node: Mapping[str, Any], value: object) -> Iterator[tuple[Any, Any]]:
        yield from ((each, value) for each in self.inside(node, value))

        if isinstance(value, (dict, list)):
            yield from _inner(node, value)

    def inside(self, node: Mapping[str, Any], value: object) -> Iterator[Any]:
        """
        Returns the schemas that *node* tries on *value* itself.
        """
        if any(isinstance(node.get(word), str) for word in _REFERENCES):
            # What is found elsewhere, by an `$id` or an anchor, is taken for the largest that it can be.
            found = target(node, self._root)
            yield self._root if found is None else found

        tag = node.get("discriminator") if self._tagged else None

        if isinstance(tag, Mapping) and isinstance(value, Mapping):
            said, mapping = value.get(tag.get("propertyName")), tag.get("mapping", {})

            if isinstance(said, str):
                yield target({"$ref": mapping.get(said)}, self._root)

            return

        for word in _ALL_OF:
            yield from node.get(word, ())

        for word in _ONE:
            yield node.get(word)

        for word in _NAMED:
            named = node.get(word)
            yield from named.values() if isinstance(named, Mapping) else ()

    def _circles(self) -> bool:
        done: set[int] = set()
        above: set[int] = set()
        waiting: list[tuple[Any, bool]] = [(self._root, True)]

        while waiting:
            node, first = waiting.pop()

            if not first:
                above.discard(id(node))
                done.add(id(node))
            elif id(node) in above:
                return True
            elif isinstance(node, dict) and id(node) not in done:
                above.add(id(node))
                waiting.append((node, False))
                waiting += [(each, True) for each in (*self.inside(node, None), *_parts(node))]

        return False


class _Counted:
    """
    A schema on a value, of which *pairs* are still to be counted.
    """

    __slots__ = ("key", "pairs", "visits")

    def __init__(self, key: tuple[int, object] | None, pairs: Iterator[tuple[Any, Any]], visits: int = 1) -> None:
        self.key = key
        self.pairs = pairs
        self.visits = visits


def _lacks(node: Mapping[str, Any], value: object) -> int:
    """
    Returns how many fields *value* may lack: each is an error of its own.
    """
    if not isinstance(value, dict):
        return 0

    named = [node.get(word) for word in _OF_FIELDS]
    lists = [node.get("required"), *(each for by in named if isinstance(by, Mapping) for each in by.values())]

    return sum(name not in value for each in lists if isinstance(each, list) for name in each)


def _inner(node: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
    """
    Returns the checks that *node* tries on the parts of *value*.
    """
    if isinstance(value, dict):
        named, matched = node.get("properties", {}), tuple(node.get("patternProperties", {}).values())
        rest = [node.get(word) for word in _OF_OBJECTS]

        for name, each in value.items():
            yield named[name] if name in named else node.get("additionalProperties"), each
            yield from ((other, each) for other in (*matched, *rest) if other is not None)

        return

    items = node.get("items")
    first = node.get("prefixItems") or (items if isinstance(items, list) else [])
    rest = [each for word in _OF_ARRAYS if (each := node.get(word)) is not None]

    for place, each in enumerate(value):
        yield first[place] if place < len(first) else items, each
        yield from ((other, each) for other in rest)


def _parts(node: Mapping[str, Any]) -> Iterator[Any]:
    """
    Returns the schemas of *node* for parts of a value.
    """
    for word in ("properties", "patternProperties"):
        yield from node.get(word, {}).values()

    for word in ("additionalProperties", "items", "propertyNames", *_OF_OBJECTS, *_OF_ARRAYS):
        yield from each if isinstance(each := node.get(word), list) else (each,)

    yield from node.get("prefixItems", ())


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]

    while waiting:
        each = waiting.pop()

        if isinstance(each, Mapping):
            yield each
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def is_large(values: Iterable[object], most: int = LARGE) -> bool:
    """
    Returns whether *values* hold more than *most* values, at any depth.
    """
    waiting = [each for each in values if type(each) in (dict, list)]
    seen = 0

    while waiting:
        each: Any = waiting.pop()
        seen += len(each)

        if seen > most:
            return True

        waiting += [part for part in (each.values() if type(each) is dict else each) if type(part) in (dict, list)]

    return False


def head(value: Any, width: int) -> Any:
    """
    Returns *value* with the first *width* items of each array, and four times as many fields of each object.
    """
    if type(value) is dict:
        return {key: head(each, width) for key, each in islice(value.items(), 4 * width)}

    return [head(each, width) for each in value[:width]] if type(value) is list else value
