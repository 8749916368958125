"""
Finds the things that a policy needs and that are missing here: optional packages, readable model files.
"""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrails.core.values.errors import install


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.policy.file import Node, Position
    from guardrails.policy.policy import Policy

Place = tuple[str | int, ...]
"""Keys, and places in lists, that lead to a setting."""

NO_PRICES: Final = (
    f"no model has a price here, so that what its responses cost is not known: {install('prices')}, or write `prices:`"
)
WITHOUT_MODEL: Final = ("mcp", "fastmcp", "proxy")
HOSTS: Final = (
    *("agent-framework", "claude-agent-sdk", "crewai", "google-adk", "langchain", "openai-agents"),
    *("pydantic-ai", "strands", *WITHOUT_MODEL),
)
"""Hosts that an adapter is for, and the MCP proxy."""
OF_MODELS: Final = (
    ("budget", "max_turns", ""),
    ("budget", "max_tokens", "tokens"),
    ("budget", "max_cost_usd", "cost_usd"),
    ("growth", "max_requests_per_second", ""),
    ("growth", "max_tokens_per_minute", "tokens"),
)
"""Limits of what a model does; with the declaration of a tool by which they count too."""


def lacking(policy: "Policy", root: "Node | None", host: str | None = None) -> list[str]:
    """
    Returns the things that *policy*, whose file is *root*, needs and does not find, and the limits that *host* cannot
    hold, as mistakes of the file.
    """
    from guardrails.policy.file import Mistake, numbered, rules, shipped

    said = []
    numbers = [] if root is None else [number for number, _ in numbered(rules(root))]
    for place, message in (*_packages(policy), *_models(policy), *_not_held(policy, host)):
        position = None if root is None else _position(root, place)
        if position is not None and Path(position.source.name).parent == shipped() and "no model response" in message:
            # A shipped policy is for all hosts; the limits that a person wrote are wanted.
            continue
        shown = [numbers[key] if isinstance(key, int) and numbers else key for key in place]
        told = f"{'.'.join(map(str, shown))}: {message}"
        said.append(told if position is None else str(Mistake(position, told)))
    return said


def _packages(policy: "Policy") -> Iterator[tuple[Place, str]]:
    from guardrails.core.guards.budget import Budget

    if policy.prices or _is_there("genai_prices"):
        return
    for place, guard in _guards(policy):
        if isinstance(guard, Budget) and guard.max_cost_usd is not None and guard.on_unpriced == "deny":
            yield (*place, Budget.name, "max_cost_usd"), NO_PRICES


def _guards(policy: "Policy") -> "Iterator[tuple[Place, Guard]]":
    for guard in policy.chain.guards:
        yield (), guard
    for name, guards in policy.scopes.items():
        yield from ((("scopes", name), guard) for guard in guards)


def _not_held(policy: "Policy", host: str | None) -> Iterator[tuple[Place, str]]:
    """
    Limits of model responses, where *host* has none: what no tool declares is never counted there.
    """
    if host not in WITHOUT_MODEL:
        return
    declared = {key for rule in policy.chain.rules for key in rule.declared}
    for place, guard in _guards(policy):
        for name, limit, by in OF_MODELS:
            if guard.name == name and getattr(guard, limit) is not None and by not in declared:
                hint = f", and no tool declares `{by}`" if by else ""
                yield (
                    (*place, name, limit),
                    f"`{host}` tells of no model response, so that this limits nothing there{hint}",
                )


def _models(policy: "Policy") -> Iterator[tuple[Place, str]]:
    """
    Model files of `retryable` that are no good. One that is not there yet is none; those of `loops` are read with the policy.
    """
    from guardrails.core.guards.retryable import Retryable
    from guardrails.core.values.errors import ModelError
    from guardrails.policy.models import read_model

    named: list[tuple[Place, str | None]] = [
        ((Retryable.name, "model"), guard.model) for guard in policy.chain.guards if isinstance(guard, Retryable)
    ]
    for at, rule in enumerate(policy.chain.rules):
        named.append((("tools", at, Retryable.name, "model"), rule.guards.get(Retryable.name, {}).get("model")))
    for place, path in named:
        if path is None:
            continue
        try:
            read_model(path)
        except FileNotFoundError:
            pass
        except ModelError as error:
            yield place, f"the model `{path}` cannot be used: {error}"
        except OSError as error:
            yield place, f"the model `{path}` cannot be read: {error.strerror or error}"


def _is_there(package: str) -> bool:
    return find_spec(package) is not None


def _position(root: "Node", place: Place) -> "Position | None":
    found, node = None, root
    for key in place:
        value = node.value
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                break
            node = value[key]
        elif isinstance(value, dict) and key in value:
            found, node = value[key].key, value[key].node
        else:
            break
    return found
