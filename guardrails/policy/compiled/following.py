"""
A compiled policy that follows the changes of its file.
"""

import os

from guardrails.policy.live.files import Loaded, PolicyFiles
from guardrails.policy.policy import Policy

from .loading import load_compiled, sources_of
from .source import is_name


def followed(source: str) -> Policy:
    """
    Returns the policy of the file, or the name, *source*. It follows the changes of that file. Raises PolicyError.
    """
    if is_name(source):
        return load_compiled(source)
    path = os.path.abspath(source)  # noqa: PTH100
    policy, sources = _loaded(source)
    policy.files = PolicyFiles(sources, lambda: Loaded(*_loaded(path)))
    return policy


def _loaded(source: str) -> tuple[Policy, dict[str, str]]:
    # What is written in between is then another content than that of the sources, and is found by the next look.
    sources = sources_of(source)
    return load_compiled(source), sources
