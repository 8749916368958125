"""
Structured content in fewer bytes that keeps its form, so that it stays valid for its schema.
"""

from typing import Any

from guardrails.core.text.plain_json import dumps


def pruned(value: Any, room: int) -> Any:
    """
    Returns the JSON-like *value* in about *room* bytes of JSON. Texts and lists keep their beginning; objects keep all
    members as far as there is room for their names.

    No mark says what was cut: one would not be of the form of what it stands beside.
    """
    size = _size(value)
    if size <= room:
        return value
    if isinstance(value, str):
        return value.encode(errors="replace")[: max(room - 2, 0)].decode(errors="ignore")
    if isinstance(value, list):
        return _leading(value, room)
    if isinstance(value, dict):
        return _members(value, room)
    return value


def _leading(items: list[Any], room: int) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        size = _size(item) + 1
        if size > room:
            # A list of one long element shows some of it.
            return kept or [pruned(item, room)]
        kept.append(item)
        room -= size
    return kept


def _members(value: dict[str, Any], room: int) -> dict[str, Any]:
    sizes = {name: _size(member) for name, member in value.items()}
    room -= sum(_size(name) + 2 for name in value)
    kept: dict[str, Any] = {}
    # The small ones first: what they leave is shared by those that are cut.
    for n, name in enumerate(sorted(sizes, key=sizes.__getitem__)):
        share = max(room, 0) // (len(sizes) - n)
        kept[name] = pruned(value[name], share)
        room -= _size(kept[name])
    made = {name: kept[name] for name in value}
    # Too many for their names even: the last ones go.
    while room < 0 and made:
        name, member = made.popitem()
        room += _size(name) + _size(member) + 2
    return made


def _size(value: Any) -> int:
    written = dumps(value)
    return 0 if written is None else len(written)
