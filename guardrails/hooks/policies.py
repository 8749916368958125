"""
The policy of a hook: as it is named, for the workspace that the event is of.
"""

import os

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from guardrails.core.engine.plan import Rule
from guardrails.core.guards.access.workspace import Workspace
from guardrails.core.guards.base import Guard
from guardrails.policy.loading import load_document
from guardrails.policy.policy import Policy

from .options import Options
from .told import Client, Told
from .transcripts import head


MAX_KEPT: Final = 64
_kept: OrderedDict[tuple[str, bool, tuple[str, str] | None], Policy] = OrderedDict()
_documents: dict[str, dict[str, Any]] = {}


def policy_of(options: Options, told: Told, client: Client) -> Policy:
    """
    The policy that *options* name. Relative folders of a workspace are below that of the project of *told*. Raises PolicyError.
    """
    said = _documents.get(options.policy)
    if said is None:
        said = _documents[options.policy] = load_document(options.policy)
    places = _places(told, client) if _is_placed(said) else None
    key = options.policy, options.observe, places
    policy = _kept.get(key)
    if policy is None:
        given = said if places is None else _placed(said, *places)
        policy = _kept[key] = Policy(**(given | {"mode": "observe"} if options.observe else given))
        if len(_kept) > MAX_KEPT:
            _kept.popitem(last=False)
    return policy


def _is_placed(said: Mapping[str, Any]) -> bool:
    return any(isinstance(guard, Workspace) for guard in said["guards"]) or any(
        Workspace.name in rule.guards for rule in said["rules"]
    )


def _places(told: Told, client: Client) -> tuple[str, str]:
    """
    The project's folder, and the one in it where the agent is. An agent that has gone out of it has not taken it along.
    """
    now = told.cwd if os.path.isabs(told.cwd) else os.getcwd()  # noqa: PTH109, PTH117
    root = client.project(head(told.transcript)) or now
    inside = os.path.commonpath([os.path.realpath(root), os.path.realpath(now)]) == os.path.realpath(root)
    return (root, now) if inside else (root, root)


def _placed(said: Mapping[str, Any], root: str, now: str) -> dict[str, Any]:
    guards: list[Guard] = []
    for guard in said["guards"]:
        if isinstance(guard, Workspace):
            settings = _settings({"root": guard.root, "also": guard.also}, root, now)
            guards.append(replace(guard, **settings))
        else:
            guards.append(guard)
    rules: list[Rule] = []
    for rule in said["rules"]:
        own = rule.guards.get(Workspace.name)
        placed = own is not None and "root" in own
        rules.append(
            replace(rule, guards={**rule.guards, Workspace.name: _settings(own, root, now)}) if placed else rule
        )
    return {**said, "guards": guards, "rules": rules}


def _settings(own: Mapping[str, Any], root: str, now: str) -> dict[str, Any]:
    """
    Those of a workspace. Relative paths of a call are taken from where the agent is, and all of the project is open to it.
    """
    if os.path.isabs(own["root"]):  # noqa: PTH117
        return dict(own)
    also = tuple(own.get("also") or ())
    here = os.path.normpath(os.path.join(now, own["root"]))  # noqa: PTH118
    whole = os.path.normpath(os.path.join(root, own["root"]))  # noqa: PTH118
    return {**own, "root": here, "also": also if here == whole else (*also, whole)}
