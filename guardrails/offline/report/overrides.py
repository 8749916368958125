"""
The suggestions as a policy file: a layer over the policy that they are for.
"""

import glob
import json

from collections.abc import Mapping, Sequence
from typing import Any, Final

from guardrails.offline.figures import visible
from guardrails.offline.report.suggestions import Suggestion


_VALUES: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML, of one version or another, does not read as text."""


def overrides(suggestions: Sequence[Suggestion], base: str, seen: str, replay: str) -> str:
    """
    Returns the text of the file. It extends *base*. The figures are described by *seen*, and *replay* is the command
    that judges the file on the same records.
    """
    lines = [
        f"# Suggested by `guardrails report --suggest` from {visible(seen)}.",
        "# Each setting has its evidence above it, by 95 % Wilson bounds. Judge it before you use it:",
        f"#   {visible(replay)}",
        "# Use it as it is, name it in `extends:` of your own policy, or copy entries into your `tools:`.",
        "version: 1",
        f"extends: {text_of(base)}",
    ]
    lines.append("tools:" if suggestions else "# Nothing is suggested: too few calls, or the policy says it already.")
    for one in suggestions:
        lines.append(f"  - match: {text_of(glob.escape(one.tool))}")
        for key, value in one.settings.items():
            lines += [f"    # {visible(one.evidence[key])}", f"    {key}: {written(value)}"]
    return "\n".join(lines) + "\n"


def written(value: Any) -> str:
    """
    Returns a setting in YAML.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {written(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value) if not isinstance(value, str) else value


def text_of(text: str) -> str:
    """
    A text in YAML.
    """
    # Printable text in double quotes is YAML as it is JSON.
    plain = text.replace("_", "").isalpha() and text.isascii() and text.lower() not in _VALUES
    return text if plain else json.dumps(text, ensure_ascii=False)
