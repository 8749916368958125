"""
The codes of the guards that bound how much, how fast and how often.
"""

from typing import Final

from .explained import LATER, OVER, Explained


def _budget(
    limit: str, means: str, told: str, loosen: str, when: str = "the session is over; status `limit_reached`"
) -> Explained:
    return Explained(
        code=f"budget.{limit}",
        when=when,
        means=f"{means} A call or a request alone is refused under this code too, if what it needs does not fit any more.",
        told=told,
        retry=OVER,
        settings=(f"budget.{limit}",),
        loosen=f"budget: {{{limit}: {loosen}}}",
        off=f"budget: {{{limit}: null}}",
        page="guards/budget.md",
        status="limit_reached",
    )


def _of_tool(limit: str, what: str, loosen: str) -> Explained:
    return Explained(
        code=f"tools.budget.{limit}",
        when=f"this tool's own limit of {what}; status `denied`",
        means=f"This tool has used up the {what} that a `tools:` rule gives it in a session. The session goes on.",
        told="`$tool` has used $used of its $limit in this session. Use another tool, or go on with what you have.",
        retry="No. Not in this session.",
        settings=(f"tools.budget.{limit}",),
        loosen=f'tools: [{{match: "pay_*", budget: {{{limit}: {loosen}}}}}]',
        off=f'tools: [{{match: "pay_*", budget: {{{limit}: null}}}}]',
        page="guards/budget.md",
    )


def _rate(prefix: str, period: str) -> Explained:
    whose = "one tool's calls" if prefix == "tools.rate" else "the calls of a session"
    cap = f"max_calls_per_{period}"
    if prefix == "rate":
        loosen, off = f"rate: {{{cap}: 600}}", f"rate: {{{cap}: null}}"
    else:
        loosen = f'tools: [{{match: "search_*", rate: {{{cap}: 600}}}}]'
        off = f'tools: [{{match: "search_*", rate: {{{cap}: null}}}}]'
    own = ", of one tool's own limit" if prefix == "tools.rate" else ""
    return Explained(
        code=f"{prefix}.{cap}",
        when=f"too soon{own}; `retryable: true` with `retry_after_ms`",
        means=f"The policy spaces out {whose}: a burst up to the limit runs, then calls at the even rate.",
        told=f"Too many calls of `$tool`: the limit is $limit a {period}. Wait $wait s, then make the call again.",
        retry=LATER,
        settings=(f"{prefix}.{cap}",),
        loosen=loosen,
        off=off,
        page="guards/rate.md",
    )


def _growth(cap: str, what: str, loosen: str) -> Explained:
    return Explained(
        code=f"growth.{cap}",
        when="the session is over until somebody extends it; status `limit_reached`",
        means=f"A fuse against runaways: {what} came faster than honest work ever does.",
        told="This session grows too fast (limit $limit). Stopping tool loop. Write the final answer from what you have.",
        retry=OVER,
        settings=(f"growth.{cap}",),
        loosen=f"growth: {{{cap}: {loosen}}}",
        off=f"growth: {{{cap}: null}}",
        page="guards/growth.md",
        status="limit_reached",
    )


_DONE: Final = "Stopping tool loop. Write the final answer from what you have."

LIMITS: Final = (
    _budget(
        "max_calls",
        "The session has started as many tool calls as the policy gives it.",
        f"Tool call limit reached ($limit). {_DONE}",
        "2000",
    ),
    _budget(
        "max_turns",
        "The session had as many model responses with tool calls as the policy gives it.",
        "Tool call limit reached ($limit). Stopping tool loop. No more turns with tool calls (`budget.max_turns`). "
        "Write the final answer from what you have.",
        "100",
    ),
    _budget(
        "max_cost_usd",
        "Tool calls and model responses have cost as much as the policy gives the session.",
        f"Cost limit reached ($limit). {_DONE}",
        "5.00",
    ),
    _budget(
        "max_tokens",
        "Model responses, and tools that say so, have used the tokens that the policy gives the session.",
        f"Token limit reached ($limit). {_DONE}",
        "5000000",
    ),
    _budget(
        "max_elapsed",
        "The session is older than the policy lets it get. Time in which all waits for a person does not count.",
        f"Time limit reached ($limit). {_DONE}",
        "24h",
    ),
    Explained(
        code="budget.unpriced",
        when="a model response of unknown price, or of unknown usage, under a cost limit: the session is over; status `limit_reached`",
        means="The policy limits the cost, and nobody knows what a response of this model cost. A limit that cannot be held closes.",
        told="No price is known for the model `$model`, so the cost limit ($limit) cannot be held. Set it under `prices` in the policy, or pass `cost_usd` to `charge`. "
        + _DONE,
        retry=OVER,
        settings=("budget.max_cost_usd", "budget.on_unpriced", "prices"),
        loosen="prices: {my-model: {input_mtok: 0.5, output_mtok: 1.5}}",
        off="budget: {on_unpriced: warn}",
        page="guards/budget.md",
        status="limit_reached",
    ),
    Explained(
        code="budget.leased_elsewhere",
        when="only in a scope that is [leased](../leases.md): other workers hold what is left; `retryable`, in 100 ms",
        means="Other workers hold what is left of a shared limit; they were asked to give it back.",
        told="Other workers hold what is left for this call; they were asked for it. Wait 0.1 s, then make the call again.",
        retry=LATER,
        settings=("scopes",),
        instead="Raise the limit of the scope, or let its workers lease smaller parts.",
        page="leases.md",
    ),
    _of_tool("max_calls", "calls", "20"),
    _of_tool("max_turns", "turns", "20"),
    _of_tool("max_cost_usd", "money", "1.00"),
    _of_tool("max_tokens", "tokens", "100000"),
    _of_tool("max_elapsed", "running time", "10m"),
    _growth("max_calls_per_second", "tool calls", "200"),
    _growth("max_requests_per_second", "model requests", "100"),
    _growth("max_tokens_per_minute", "tokens", "100000000"),
    _rate("rate", "second"),
    _rate("rate", "minute"),
    _rate("tools.rate", "second"),
    _rate("tools.rate", "minute"),
    Explained(
        code="streak.max_same",
        when="the tool was called that often in a row",
        means="One tool was called again and again with no other call in between. Tools declared as polling are exempt.",
        told="`$tool` was called $used times in a row (limit $limit). Use what you have, or call another tool.",
        retry="Yes, after a call of another tool.",
        settings=("streak.max_same", "tools.polling"),
        loosen="streak: {max_same: 50}",
        off="streak: {max_same: null}",
        page="guards/streak.md",
    ),
    Explained(
        code="streak.max_failures",
        when="it failed that often in a row",
        means="One tool failed again and again with no other call in between.",
        told="`$tool` failed $used times in a row (limit $limit). Do something else first: another tool, or tell the user what does not work.",
        retry="Yes, after a call of another tool.",
        settings=("streak.max_failures",),
        loosen="streak: {max_failures: 20}",
        off="streak: {max_failures: null}",
        page="guards/streak.md",
    ),
    Explained(
        code="denials.max_turns_in_a_row",
        when="the session is over; status `limit_reached`",
        means="The model did nothing but repeat refused calls, turn after turn. Refusals cost no tool, but each turn costs model money.",
        told=f"Every tool call of $used turns in a row was refused. {_DONE}",
        retry=OVER,
        settings=("denials.max_turns_in_a_row",),
        loosen="denials: {max_turns_in_a_row: 6}",
        off="denials: {max_turns_in_a_row: null}",
        page="guards/denials.md",
        status="limit_reached",
    ),
)
