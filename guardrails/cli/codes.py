"""
Every code that the library says, explained: for `guardrails explain` and for the tables of the documentation.

A guard declares its codes in its own class. Their meaning stands in `codes.yaml`, so that a program that runs never loads it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """
    One code in plain words, for a person who has met it. `codes.yaml` says what each part is.
    """

    code: str
    when: str
    means: str
    told: str
    retry: str
    settings: tuple[str, ...] = ()
    loosen: str = ""
    off: str = ""
    instead: str = ""
    page: str
    kind: Literal["denial", "nudge", "end", "failure", "status"] = "denial"
    status: str = "denied"


def _explained() -> Iterator[Explained]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for group in yaml.load(Path(__file__).with_name("codes.yaml").read_text(encoding="utf-8"), Loader=loader):  # noqa: S506
        for code, own in group["codes"].items():
            guard = code.removesuffix(".error")
            shared = {
                name: part.replace("{guard}", guard) if isinstance(part, str) else part
                for name, part in group.get("shared", {}).items()
            }
            parts = {**shared, **own, "code": code}
            yield Explained(**{**parts, "settings": tuple(parts.get("settings", ()))})


EXPLAINED: Final[Mapping[str, Explained]] = {one.code: one for one in _explained()}
"""Codes, and beside them the kinds of failures and the statuses."""
CODES: Final[Mapping[str, Explained]] = {code: one for code, one in EXPLAINED.items() if "." in code}
"""Those that stand in `code`, of an envelope, a record or the end of a loop; those of scopes without the scope's name."""
