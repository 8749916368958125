"""
Mistakes that pydantic finds in a policy, each with its line and column.
"""

import re

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from .schema import Schema
from .wording import BY_RULE, UNKNOWN_KEY, choices_of, expectation, unknown_key, wording
from .yaml_position import Entry, Mistake, Node, plain, quoted


Path = tuple[str | int, ...]

_MAX_WALKS: Final = 64


class _Fault(NamedTuple):
    """
    One error of pydantic, found in the tree; *path* leads to the value, for a key error to the key.
    """

    kind: str
    path: Path
    entry: Entry
    """The value; of a missing key the map that lacks it."""
    unions: tuple[int, ...]
    """Length of the path at each union that was passed on the way."""
    tags: tuple[str | int, ...]
    """The alternative that was tried at each of them."""
    expected: str
    """What the value should have been; "" where it is of the right kind."""
    context: dict[str, Any]
    message: str


def find_mistakes(errors: Sequence[Any], root: Node, schema: Schema, *, partial: bool = False) -> list[Mistake]:
    """
    Returns *errors* (of a pydantic ValidationError) about the data of *root*, as mistakes at their places.

    *schema* is the policy's JSON Schema, for suggestions. With *partial* the data is one file of several: a key that
    another file may supply is no mistake.
    """
    faults = [_find(error, root) for error in errors]
    sound = [fault for fault in faults if fault.kind in UNKNOWN_KEY or not fault.entry.node.broken]
    meant = _settle(sound, 0)

    return [_mistake(fault, schema) for fault in meant if not (partial and _may_be_elsewhere(fault))]


def _may_be_elsewhere(fault: _Fault) -> bool:
    # An item of a list is whole in its file.
    if any(isinstance(part, int) for part in fault.path):
        return False

    return fault.kind == "missing" or (fault.kind in BY_RULE and isinstance(fault.entry.node.value, dict))


def _find(error: Any, root: Node) -> _Fault:
    kind, loc, context = error["type"], error["loc"], error.get("ctx", {})
    of_key = loc[-1:] == ("[key]",)
    loc = loc[:-1] if of_key or kind == "missing" else loc
    start = _Walk(Entry(root.position, root), (), (), ())
    walks = list(islice(_walks(start, loc), _MAX_WALKS))
    walk = next((walk for walk in walks if of_key or plain(walk.entry.node) == error["input"]), walks[0])
    entry, path = walk.entry, walk.path

    if kind == "missing":
        path = (*path, error["loc"][-1])
    elif of_key:
        key = str(path[-1])
        entry = Entry(entry.key, Node(entry.key, key, written=key))
    elif kind == "union_tag_invalid":
        tag = context["discriminator"].strip("'")
        entry, path = _child(entry, tag) or entry, (*path, tag)

    return _Fault(
        kind,
        path,
        entry,
        walk.unions,
        walk.tags,
        expected=expectation(kind, context),
        context=context,
        message=error["msg"],
    )


class _Walk(NamedTuple):
    entry: Entry
    path: Path
    unions: tuple[int, ...]
    tags: tuple[str | int, ...]


def _walks(walk: _Walk, loc: Path) -> Iterator[_Walk]:
    # pydantic's places mix keys of the data with the names of union alternatives, and one may look like the other.
    if not loc:
        yield walk
        return

    part, rest = loc[0], loc[1:]

    if inner := _child(walk.entry, part):
        yield from _walks(walk._replace(entry=inner, path=(*walk.path, part)), rest)

    yield from _walks(walk._replace(unions=(*walk.unions, len(walk.path)), tags=(*walk.tags, part)), rest)


def _child(entry: Entry, part: str | int) -> Entry | None:
    value = entry.node.value

    if isinstance(value, dict) and isinstance(part, str):
        return value.get(part)

    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return Entry(value[part].position, value[part])

    return None


def _settle(faults: list[_Fault], level: int) -> list[_Fault]:
    """
    *faults* without those of union alternatives that were not meant.
    """
    settled = []
    unions: dict[Path, dict[str | int, list[_Fault]]] = {}

    for fault in faults:
        if level >= len(fault.unions):
            settled.append(fault)
        else:
            alternatives = unions.setdefault(fault.path[: fault.unions[level]], {})
            alternatives.setdefault(fault.tags[level], []).append(fault)

    for place, alternatives in unions.items():
        settled += _meant(place, [_settle(tried, level + 1) for tried in alternatives.values()])

    return settled


def _meant(place: Path, alternatives: list[list[_Fault]]) -> list[_Fault]:
    refused = [[fault for fault in tried if fault.path == place and fault.expected] for tried in alternatives]
    fitting = [tried for tried, refusals in zip(alternatives, refused, strict=True) if not refusals]

    if fitting:
        return min(fitting, key=len)

    refusals = [fault for tried in refused for fault in tried]
    expected = " or ".join(dict.fromkeys(fault.expected for fault in refusals))
    choices = {"choices": [choice for fault in refusals for choice in choices_of(fault.context)]}

    return [refusals[0]._replace(expected=expected, context=choices)]


def _mistake(fault: _Fault, schema: Schema) -> Mistake:
    entry, key = fault.entry, str(fault.path[-1]) if fault.path else ""

    if fault.kind == "missing":
        return Mistake(entry.key, f"missing key {quoted(key)}")

    if fault.kind == "union_tag_not_found":
        return Mistake(entry.key, f"missing key {quoted(fault.context['discriminator'].strip(chr(39)))}")

    if fault.kind in UNKNOWN_KEY:
        return Mistake(entry.key, unknown_key(fault.path, schema))

    said = wording(fault.kind, fault.expected, fault.context, fault.message, entry.node)
    where = re.sub(r"\s+", " ", ".".join(map(str, fault.path)))

    return Mistake(entry.place, f"{where}: {said}" if where else said)
