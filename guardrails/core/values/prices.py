"""
The cost of a model response: at the policy's own prices, else at those of `genai-prices`, else unknown.

The package `genai-prices` (extra `prices`; MIT) bundles the list prices of some 2,300 models, dated where they changed. It
is imported with the first response that the policy has no price for, and never asks the network.
"""

import re

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final, NamedTuple

from .errors import install
from .logs import warn_once
from .types import MICRO
from .usage import Price, Usage, cost_of, own_price


INSTALL: Final = f"install the extra: {install('prices')}"


class Priced(NamedTuple):
    """
    The cost of one model response, and its source.
    """

    cost: int | None
    """Micro-dollars; None: nobody knows, which is never free."""
    by: str | None = None
    """`policy`, `caller`, `response`, or the name and version of the list: `genai-prices 0.2.3`. None: unknown."""
    model: str | None = None
    """The entry of that list: `openai/gpt-5-mini`."""
    unknown: str = ""
    """Why nobody knows."""
    untold: bool = False
    """The response did not say what it used."""

    @property
    def cost_usd(self) -> float | None:
        return None if self.cost is None else self.cost / MICRO

    @property
    def recorded(self) -> dict[str, object]:
        """
        The fields that the record of a charge has of it.
        """
        return {"cost": self.cost, "priced_by": self.by, "priced_as": self.model}


_Listed = tuple[Any, Any, str]
"""A model as `genai-prices` lists it: its provider, itself, and the version of the list."""


def listed_price(usage: Usage, model: str, provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* as listed for the time *at_ms*, or why it is not known. Raises nothing.
    """
    try:
        from genai_prices import data_snapshot
    except ImportError as error:
        lacks = error.name == "genai_prices"
        return Priced(None, unknown=INSTALL if lacks else f"genai-prices cannot be imported: {error}")
    try:
        # Whoever runs its `UpdatePrices` has another list from then on. It remembers what it has looked up.
        listed = _look_up(data_snapshot.get_snapshot(), model, provider)
        return Priced(None, unknown=listed) if isinstance(listed, str) else _cost(usage, listed, at_ms)
    except Exception as error:  # noqa: BLE001  another's code and data never fail a response that was paid for
        return Priced(None, unknown=f"genai-prices failed: {type(error).__name__}: {error}")


def price_of(usage: Usage | None, model: str, own: Mapping[str, Price], provider: str | None, at_ms: int) -> Priced:
    """
    Returns the cost of *usage* (None: the response did not say) at the *own* prices of a policy, else at the listed
    ones.

    The *provider* is an id, for example `openai` or `azure`, or the URL of the endpoint. If the URL belongs to no known
    provider, the name of the *model* alone decides. The time *at_ms* matters because prices change. If the price is
    unknown, the log says so once for each model.
    """
    if usage is None:
        price = own_price(model, own)
        if price is not None and price.free:
            return Priced(0, "policy")
        warn_once(
            f"usage {model}",
            "a response of %s did not say what it used: it is counted as unpriced, so no cost limit can be held",
            _told(model),
        )
        return Priced(None, unknown="the response did not say what it used", untold=True)
    cost = cost_of(usage, model, own)
    if cost is not None:
        return Priced(cost, "policy")
    priced = listed_price(usage, model, provider, at_ms)
    if priced.cost is None and usage.cost is not None:
        return Priced(usage.cost, "response")
    if priced.cost is None:
        warn_once(
            f"price {model}",
            "no price is known for %s (%s): its responses are counted as unpriced, so no cost limit can be held; "
            "set its price in the policy's `prices:`",
            _told(model),
            priced.unknown,
        )
    return priced


def _told(model: str) -> str:
    return f"`{model}`" if model else "a model without a name"


def public(provider: str | None) -> str | None:
    """
    Returns *provider* for a record: of a URL no user, no password and no query, which may be keys.
    """
    if provider is None or "://" not in provider:
        return provider
    scheme, _, rest = provider.partition("://")
    place, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


def _look_up(snapshot: Any, model: str, provider: str | None) -> _Listed | str:
    from genai_prices import __version__

    version = f"genai-prices {__version__}"
    if snapshot.from_auto_update:
        version += f" updated {snapshot.timestamp:%Y-%m-%dT%H:%M}"
    by_url = provider is not None and "://" in provider
    ways: list[tuple[str, str | None, str | None]] = [
        (model, None if by_url else provider, provider if by_url else None)
    ]
    if by_url:
        ways.append((model, None, None))
    if (provider is None or by_url) and (prefixed := re.fullmatch(r"([\w-]+)/(.+)", model)):
        ways.append((prefixed[2], prefixed[1], None))
    for name, provider_id, url in ways:
        try:
            found, info = snapshot.find_provider_model(name, None, provider_id, url)
        except LookupError:
            continue
        return found, info, version
    return f"{version} does not list it" + ("" if provider is None or by_url else f" for `{provider}`")


def _cost(usage: Usage, listed: _Listed, at_ms: int) -> Priced:
    provider, model, version = listed
    # A price is known with any clock.
    at = datetime.fromtimestamp(at_ms / 1000, UTC) if at_ms >= 0 else datetime.max.replace(tzinfo=UTC)
    name, price = f"{provider.id}/{model.id}", model.get_prices(at)
    if (usage.input and price.input_mtok is None) or (usage.output and price.output_mtok is None):
        # It would take these tokens for free because it says nothing of them.
        return Priced(None, unknown=f"{version} does not price `{name}` by the token")
    exact = _full(usage, provider, model, at) * MICRO
    return Priced(int(exact.to_integral_value(ROUND_HALF_EVEN)), version, name)


def _full(usage: Usage, provider: Any, model: Any, at: datetime) -> Decimal:
    """
    USD by the list's own rules. Tokens that it cannot tell apart (cached audio, say) count as the dearer ones.
    """
    from genai_prices import Usage as Counts

    cached = min(usage.cached, usage.input)
    counts = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": cached,
        "cache_write_tokens": min(usage.cache_write, usage.input - cached),
        "cache_write_1h_tokens": min(usage.cache_write_1h, usage.cache_write, usage.input - cached),
        "output_reasoning_tokens": min(usage.reasoning, usage.output),
        "input_audio_tokens": min(usage.input_audio, usage.input),
        "output_audio_tokens": min(usage.output_audio, usage.output),
    }
    given = {name: count for name, count in counts.items() if count}
    for left_out in (
        (),
        ("cache_write_1h_tokens",),
        ("cache_write_1h_tokens", "cache_read_tokens"),
        ("cache_write_1h_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens"),
    ):
        kept = {name: count for name, count in given.items() if name not in left_out}
        try:
            made = model.calc_price(Counts(**kept), provider, genai_request_timestamp=at)
        except ValueError:
            continue
        return Decimal(made.total_price)
    raise LookupError(f"no price for {', '.join(given)} together")
