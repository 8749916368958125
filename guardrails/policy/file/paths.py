"""
Files that a policy names, relative to the file that names them.
"""

from pathlib import Path
from typing import Any, Final

from guardrails.core.repetition.learned.model import DEFAULT

from .yaml_position import Node


LEARNED: Final = ("retryable", "loops")
"""Guards with a `model`."""


def place_models(data: dict[str, Any], root: Node) -> None:
    """
    Put in *data*, the checked settings of *root*, the whole path of each model file in place of the one that is written.
    """
    for guard in LEARNED:
        _place(data.get(guard), _inner(root, guard))
    rules = _inner(root, "tools")
    for rule, node in zip(
        data.get("tools", ()), rules.value if rules and isinstance(rules.value, list) else (), strict=False
    ):
        for guard in LEARNED:
            _place(rule.get(guard), _inner(node, guard))


def _inner(node: Node | None, key: str) -> Node | None:
    if node is None or not isinstance(node.value, dict) or key not in node.value:
        return None
    return node.value[key].node


def _place(settings: Any, node: Node | None) -> None:
    named = _inner(node, "model")
    if isinstance(settings, dict) and settings.get("model") not in (None, "", DEFAULT) and named is not None:
        # Merged settings come from several files: each value knows its own.
        settings["model"] = str(Path(named.position.source.name).absolute().parent / settings["model"])
