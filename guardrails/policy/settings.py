"""
The checked data of a policy file as the arguments of `Policy`; no more is imported than these are made of.
"""

from typing import Any, Final

from guardrails.core.engine.plan import Rule
from guardrails.core.guards import GUARDS, Kinds
from guardrails.core.guards.base import Guard
from guardrails.core.guards.lease import Lease
from guardrails.core.values.usage import Price


_AS_WRITTEN: Final = ("mode", "on_error", "envelope", "fields", "messages")
KEYS: Final = frozenset((*_AS_WRITTEN, "prices", "scopes", "tools"))
"""Of a policy file, beside its guards, `version` and `extends`."""


def settings(data: dict[str, Any], kinds: Kinds = GUARDS) -> dict[str, Any]:
    """
    Returns a checked document as arguments for `Policy`.
    """
    shared: Kinds = (*kinds, Lease)
    made: dict[str, Any] = {"guards": [cls(**_plain(_named(cls, data[cls.name]))) for cls in kinds if cls.name in data]}
    for key in _AS_WRITTEN:
        if key in data:
            made[key] = data[key]
    made["prices"] = {model: Price(**price) for model, price in data.get("prices", {}).items()}
    made["scopes"] = {
        name: [cls(**_plain(own[cls.name])) for cls in shared if cls.name in own]
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
    guards = {cls.name: _plain(entry.pop(cls.name)) for cls in kinds if isinstance(entry.get(cls.name), dict)}
    mode, on_error = entry.pop("mode", None), entry.pop("on_error", None)
    patterns = (match,) if isinstance(match, str) else tuple(match)
    return Rule(match=patterns, declared=_plain(entry), guards=guards, mode=mode, on_error=on_error)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
