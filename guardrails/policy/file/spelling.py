"""
Other spellings of keys, replaced by those that the settings have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .schema import OtherNames
from .yaml_position import Entry, Mistake, Node, quoted


@dataclass(slots=True)
class Respelling:
    """
    The findings on the way through the files of a policy.
    """

    other_names: OtherNames = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    """Keys that are given by two names."""
    outdated: list[Mistake] = field(default_factory=list)
    """Keys that are written otherwise now; both are read."""

    def of(self, node: Node, key: str = "") -> Node:
        """
        Returns *node*, the value of *key*, with each key in it as the settings have it.
        """
        if isinstance(node.value, list):
            return replace(node, value=[self.of(item) for item in node.value])

        if not isinstance(node.value, dict):
            return node

        return replace(node, value=self._map(node.value, self.other_names.get(key, {})))

    def _map(self, given: Mapping[str, Entry], spellings: Mapping[str, str]) -> dict[str, Entry]:
        made: dict[str, Entry] = {}
        spelt: dict[str, str] = {}

        for written, entry in given.items():
            name, _, key = spellings[written].partition(".") if written in spellings else (written, "", "")
            held = made.get(name)

            if key:
                self.outdated.append(Mistake(entry.key, _now(written, name, key, entry.node)))
                spelt[f"{name}.{key}"] = written
                value = held.node.value if held is not None else {}

                if isinstance(value, dict) and key not in value:
                    made[name] = Entry(entry.key, Node(entry.key, {**value, key: entry}, block=True))
                else:
                    first = value[key] if isinstance(value, dict) else held
                    self._twice(entry, written, f"{name}.{key}", first or entry)
            elif held is None:
                spelt[name] = written
                made[name] = entry._replace(node=self.of(entry.node, name))
            elif name in spelt or not isinstance(held.node.value, dict) or not isinstance(entry.node.value, dict):
                other = spelt.get(name) or next(old for key, old in spelt.items() if key.startswith(f"{name}."))
                self._twice(entry, written, other, held)
            else:
                for again in held.node.value.keys() & entry.node.value.keys():
                    self._twice(
                        entry.node.value[again], f"{name}.{again}", spelt[f"{name}.{again}"], held.node.value[again]
                    )

                made[name] = entry._replace(node=replace(entry.node, value={**entry.node.value, **held.node.value}))

        return made

    def _twice(self, entry: Entry, written: str, other: str, first: Entry) -> None:
        said = f"key {quoted(written)} is {quoted(other)} by another name, given twice (first on line {first.key.line})"
        self.mistakes.append(Mistake(entry.key, said))


def _now(written: str, name: str, key: str, node: Node) -> str:
    value = node.written if isinstance(node.value, (int, float, str)) else "null" if node.value is None else "..."

    return f"hint: {quoted(written)} is written {quoted(f'{name}: {{{key}: {value}}}')} now"
