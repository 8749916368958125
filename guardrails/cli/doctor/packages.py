"""
Packages: those that are needed, those of the extras, and another distribution in the same folder.
"""

import re

from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distributions, requires, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from guardrails.core.values.errors import EXTRAS, install


OURS: Final = "toolcall-guardrails"
THEIRS: Final = "guardrails-ai"
FILES_OF_THEIRS: Final = ("guard.py", "async_guard.py", "validator_base.py", "hub")
"""What that one has in a folder of the same name, and this one has not."""
UNINSTALL: Final = (
    f"pip uninstall {THEIRS} {OURS}, delete what is left of the folder, and install the one that you want: "
    "both use the name `guardrails`"
)
_REQUIREMENT: Final = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*extra\s*==\s*['\"]([^'\"]+)['\"])?$"
)
_RELEASE: Final = re.compile(r"^v?(\d+(?:\.\d+)*)(.*)$")


class Package(NamedTuple):
    """
    A package that is wanted, and what is there of it.
    """

    name: str
    wanted: str
    installed: str | None

    @property
    def in_range(self) -> bool:
        """
        Whether the version that is installed is one of those that are wanted.
        """
        return self.installed is not None and satisfies(self.installed, self.wanted)

    def to_dict(self) -> dict[str, Any]:
        """
        The same for another program.
        """
        return {"name": self.name, "wanted": self.wanted, "installed": self.installed, "in_range": self.in_range}


def satisfies(installed: str, wanted: str) -> bool:
    """
    Whether the version *installed* is in the range *wanted*, such as `<4,>=3.10`.
    """
    return all(_holds(installed, part.strip()) for part in wanted.split(",") if part.strip())


def wanted_packages(lines: Iterable[str] | None = None) -> dict[str, list[Package]]:
    """
    The packages that are needed, under the name "", and those of each extra. *lines* are requirements in place of those of the
    installation; a checkout that is not installed has none.
    """
    if lines is None:
        try:
            lines = requires(OURS) or ()
        except PackageNotFoundError:
            lines = ()
    found: dict[str, list[Package]] = {}
    for line in lines:
        read = _REQUIREMENT.match(line.strip())
        if read is None or read[1] == OURS or (read[3] is not None and read[3] not in EXTRAS):
            continue
        found.setdefault(read[3] or "", []).append(Package(read[1], read[2].strip(), _installed(read[1])))
    return dict(sorted(found.items()))


def wrong_packages(found: dict[str, list[Package]]) -> list[tuple[str, str]]:
    """
    Returns the broken packages, each with the next step: one that is needed and lacks, or one of another version.
    """
    said: list[tuple[str, str]] = []
    for extra, packages in found.items():
        for one in packages:
            if one.installed is not None and not one.in_range:
                fix = install(extra) if extra else f"pip install {OURS}"
                said.append((f"`{one.name}` is installed as {one.installed}, and {one.wanted} is needed", fix))
            elif one.installed is None and not extra:
                said.append((f"`{one.name}` is not installed", f"pip install {OURS}"))
    return list(dict.fromkeys(said))


def clash(folder: Path, installed: Iterable[Distribution] | None = None) -> str | None:
    """
    Returns the reason why the distribution guardrails-ai stands in the way of this one, whose package is in *folder*.
    Returns None if it does not.
    """
    left = [name for name in FILES_OF_THEIRS if (folder / name).exists()]
    if left:
        return f"`{folder}` holds files of {THEIRS}: {', '.join(left)}"
    there = distributions() if installed is None else installed
    if any((one.metadata["Name"] or "").casefold().replace("_", "-") == THEIRS for one in there):
        return f"{THEIRS} is installed too, and either overwrites files of the other"
    return None


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _holds(installed: str, part: str) -> bool:
    sign = part.rstrip("0123456789.*abrcdevpost+!-_ ") if part[:1] in "<>=!~" else ""
    bound = part[len(sign) :].strip()
    here, there = _key(installed), _key(bound.removesuffix(".*"))
    match sign.strip():
        case ">=":
            return here >= there
        case "<=":
            return here <= there
        case ">":
            return here > there
        case "<":
            # A pre-release of the bound is not below it.
            return here[0] < there[0]
        case "==" | "!=":
            same = here[0][: len(_numbers(bound))] == _numbers(bound) if bound.endswith(".*") else here == there
            return same is (sign.strip() == "==")
        case "~=":
            return here >= there and here[0][: len(_numbers(bound)) - 1] == _numbers(bound)[:-1]
    return True


def _key(text: str) -> tuple[tuple[int, ...], bool]:
    """
    The numbers of a version, padded, and whether it is a release.
    """
    found = _RELEASE.match(text)
    numbers = _numbers(text)
    return (*numbers, *([0] * (6 - len(numbers)))), found is not None and not re.match(r"\.?(a|b|rc|dev)", found[2])


def _numbers(text: str) -> tuple[int, ...]:
    found = _RELEASE.match(text)
    return () if found is None else tuple(map(int, found[1].split(".")))
