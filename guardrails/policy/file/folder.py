"""
Finds files. A policy is found by its name among the library's own, or at a path. A file that a policy names is found
relative to that policy's file.
"""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Final

from guardrails.core.guards.base import Guard
from guardrails.core.values.errors import PolicyError
from guardrails.policy.source import is_name

from .wording import suggestion
from .yaml_position import Node, quoted


PATH_SHOWN: Final = 500
"""Characters of a path in a message: its end is what tells it apart."""

_SUFFIX: Final = ".yaml"
_PACKAGE: Final = Path(__file__).parents[2]


def names() -> list[str]:
    """
    Returns the policies that are found by name, sorted.
    """
    return sorted(path.stem for path in shipped().glob(f"*{_SUFFIX}"))


def find(name_or_path: str | PathLike[str]) -> Path:
    """
    Returns the file of a policy: of a bare name in the library's own folder and nowhere else, else the path.

    The working directory is never searched: a file there is used only if it is written as a path (`./default.yaml`).
    Raises PolicyError if there is no such file, naming the policies there are.
    """
    if isinstance(name_or_path, str) and is_name(name_or_path):
        known = names()

        if name_or_path in known:
            return shipped() / f"{name_or_path}{_SUFFIX}"

        listed = f"; there are {', '.join(map(quoted, known))}" if known else ""
        hint = f"{suggestion(name_or_path, known)}{listed}; a file is written as a path"
        raise PolicyError([f"no policy named {quoted(name_or_path)}{hint}, `./{name_or_path}{_SUFFIX}`"])

    path = Path(name_or_path)

    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False

    if not found:
        raise PolicyError([f"no policy file {quoted(str(path), PATH_SHOWN)}"])

    return path


def shipped(package: Path = _PACKAGE) -> Path:
    """
    Returns the folder of the policies that come with the library in the folder *package*: inside it after an install,
    beside it in the repository.
    """
    # A wheel carries the policies inside the package; beside it in site-packages, `policies` would be someone else's.
    packaged = package / "_policies"

    return packaged if packaged.is_dir() else package.parent / "policies"


def place_files(data: dict[str, Any], root: Node, kinds: Iterable[type[Guard]]) -> None:
    """
    Write whole paths into *data*, the checked settings of *root*. Each file that a guard of these *kinds* names gets
    its whole path.
    """
    rules = inner(root, "tools")
    written = rules.value if rules and isinstance(rules.value, list) else ()
    for cls in kinds:
        for setting in cls.files:
            _place(data.get(cls.name), setting, inner(root, cls.name))
            for rule, node in zip(data.get("tools", ()), written, strict=False):
                _place(rule.get(cls.name), setting, inner(node, cls.name))
            for scope, own in data.get("scopes", {}).items():
                _place(own.get(cls.name), setting, inner(inner(inner(root, "scopes"), scope), cls.name))


def inner(node: Node | None, key: str) -> Node | None:
    """
    Returns the value of the map *node* under *key*. Returns None if *node* is no map, or has no such key.
    """
    if node is None or not isinstance(node.value, dict) or key not in node.value:
        return None
    return node.value[key].node


def _place(settings: Any, setting: str, node: Node | None) -> None:
    named = inner(node, setting)
    if isinstance(settings, dict) and settings.get(setting) not in (None, "") and named is not None:
        # Merged settings come from several files: each value knows its own.
        settings[setting] = str(Path(named.position.source.name).absolute().parent / settings[setting])
