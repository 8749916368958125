"""
The policy of a hook: as it is named, for the workspace that the event is of.
"""

import os

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

from guardrails.core.chain import Chain, Rule
from guardrails.core.guards.workspace import Workspace
from guardrails.core.values.errors import PolicyError
from guardrails.policy.document import Document
from guardrails.policy.policy import Policy

from .options import Options
from .told import Client, Told
from .transcripts import head


def policy_of(options: Options, told: Told, client: Client) -> Policy:
    """
    The policy that *options* name. Relative folders of a workspace are below that of the project of *told*. Raises PolicyError.
    """
    policy = _loaded(options)
    return _placed(policy, *_places(told, client)) if _is_placed(policy.chain) else policy


@lru_cache(maxsize=64)
def _loaded(options: Options) -> Policy:
    if options.wrong:
        raise PolicyError([options.wrong])
    said = Document(options.policy).arguments()
    return Policy(**{"envelope": "quiet", **said} | ({"mode": "observe"} if options.observe else {}))


def _is_placed(chain: Chain) -> bool:
    return any(isinstance(guard, Workspace) for guard in chain.guards) or any(
        Workspace.name in rule.guards for rule in chain.rules
    )


def _places(told: Told, client: Client) -> tuple[str, str]:
    """
    The project's folder, and the one in it where the agent is. An agent that has gone out of it has not taken it along.
    """
    now = told.cwd if os.path.isabs(told.cwd) else os.getcwd()  # noqa: PTH109, PTH117
    root = client.project(head(told.transcript)) or now
    inside = os.path.commonpath([os.path.realpath(root), os.path.realpath(now)]) == os.path.realpath(root)
    return (root, now) if inside else (root, root)


@lru_cache(maxsize=64)
def _placed(policy: Policy, root: str, now: str) -> Policy:
    chain = policy.chain
    guards = [
        replace(guard, **_settings({"root": guard.root, "also": guard.also}, root, now))
        if isinstance(guard, Workspace)
        else guard
        for guard in chain.guards
    ]
    rules: list[Rule] = []
    for rule in chain.rules:
        own = rule.guards.get(Workspace.name) or {}
        placed = {**rule.guards, Workspace.name: _settings(own, root, now)} if "root" in own else None
        rules.append(rule if placed is None else replace(rule, guards=placed))
    made = copy(policy)
    made.chain = chain.with_guards(guards, rules)
    return made


def _settings(own: Mapping[str, Any], root: str, now: str) -> dict[str, Any]:
    """
    The settings of the guard `workspace`. Relative paths of a call are taken from where the agent is, and all of the
    project is open to it.
    """
    if os.path.isabs(own["root"]):  # noqa: PTH117
        return dict(own)
    also = tuple(own.get("also") or ())
    here = os.path.normpath(os.path.join(now, own["root"]))  # noqa: PTH118
    whole = os.path.normpath(os.path.join(root, own["root"]))  # noqa: PTH118
    return {**own, "root": here, "also": also if here == whole else (*also, whole)}
