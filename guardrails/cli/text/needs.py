"""
Finds the things that a policy needs and that are missing here: optional packages, readable model files.
"""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
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


def lacking(policy: "Policy", root: "Node | None") -> list[str]:
    """
    Returns the things that *policy*, whose file is *root*, needs and does not find, as mistakes of the file.
    """
    from guardrails.policy.file import Mistake, numbered, rules

    said = []
    numbers = [] if root is None else [number for number, _ in numbered(rules(root))]
    for place, message in (*_packages(policy), *_models(policy)):
        position = None if root is None else _position(root, place)
        shown = [numbers[key] if isinstance(key, int) and numbers else key for key in place]
        told = f"{'.'.join(map(str, shown))}: {message}"
        said.append(told if position is None else str(Mistake(position, told)))
    return said


def _packages(policy: "Policy") -> Iterator[tuple[Place, str]]:
    from guardrails.core.guards.budget import Budget

    if policy.prices or _is_there("genai_prices"):
        return
    own: list[tuple[Place, Iterable[Guard]]] = [((), policy.chain.guards)]
    own += [(("scopes", name), guards) for name, guards in policy.scopes.items()]
    for place, guards in own:
        for guard in guards:
            if isinstance(guard, Budget) and guard.max_cost_usd is not None and guard.on_unpriced == "deny":
                yield (*place, Budget.name, "max_cost_usd"), NO_PRICES


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
