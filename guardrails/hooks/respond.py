"""
One event of a coding CLI in, exactly one JSON object out.
"""

import json
import os
import sys
import time

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

from guardrails.core.values.errors import GuardrailsError, PolicyError
from guardrails.core.values.logs import log
from guardrails.core.values.names import session_name
from guardrails.policy.policy import Policy, unheld
from guardrails.session.session import Session
from guardrails.stores.places import is_url, store_at

from .clients import CLIENTS, MISSING, Answer, Client, Event, client_of
from .events import answer, charge, close_lost, hidden_agent, share_of
from .options import Options, Rules
from .results import mapping


# Its connection stays open as long as the process: to close one makes SQLite tidy up its file.
_store = cache(store_at)


def respond(
    data: bytes, options: Options, *, project: str = "", trace: str = "", clock: Callable[[], float] = time.time
) -> bytes:
    """
    Returns the answer of a hook that reads *data*: one JSON object, without a newline. Never raises. The folder in which the session began
    is *project*, if not that of the event. The W3C `traceparent` of the span around the event is *trace*. The *clock* tells the seconds
    since 1970.

    A failure here is answered as the policy's `on_error` says: `{}`, or before a call its refusal. Without a policy that can be used a call
    that may change something is refused. With `observe` every event is answered with `{}`.
    """
    client, event, rules = CLIENTS[options.client or "claude"], None, None
    try:
        rules = Rules.of(options)
        payload = json.loads(data)
        client = client if options.client else client_of(payload)
        event = client.read(payload)
        made = {} if event is None else _answer(client, event, rules, project, trace, clock)
    except PolicyError as error:
        made = _unguarded(client, event, str(error))
    except Exception as error:  # what no client says, and whatever a store raises
        log.error("a hook failed: %r", error)
        refuses = mapping(rules and rules.settings).get("on_error", "deny") == "deny"
        why = str(error)[:500] if isinstance(error, (GuardrailsError, OSError)) else type(error).__name__
        reason = f"guardrails could not judge this call, so it was not made: {why}. Tell the user."
        made = client.refuse(reason) if refuses and (event is None or event.kind == "before") else {}
    return b"{}" if options.observe else json.dumps(made).encode()


def _unguarded(client: Client, event: Event | None, wrong: str) -> Answer:
    """
    The answer where no policy can be used: nothing runs that may change something.
    """
    log.error("the policy cannot be used: %s", wrong)
    tool = client.tool_of(event.tool) if event is not None else None
    if event is not None and event.kind == "before" and not (tool and tool.read_only):
        return client.refuse(f"The policy of guardrails cannot be used, so that only looks run. Tell the user: {wrong}")
    return _message(f"the policy cannot be used, so that only looks run, unguarded: {wrong}")


def _message(text: str) -> Answer:
    return {"systemMessage": f"guardrails: {text}"[:2_000]}


def _answer(client: Client, event: Event, rules: Rules, project: str, trace: str, clock: Callable[[], float]) -> Answer:
    if not event.session:
        raise ValueError("the event does not say of which session it is")
    project, options, telemetry = project or event.cwd or os.getcwd(), rules.options, None
    if "opentelemetry.trace" in sys.modules:
        from guardrails.otel import of_process

        telemetry = of_process()
    policy, name = rules.policy(project, event.cwd or project), session_name(event.session)
    given: dict[str, Any] = {"store": _store(options.store_path), "records": options.records_path, "clock": clock}
    session = policy.session(name, scopes=_scopes(policy, options), telemetry=telemetry, **given)
    try:
        with nullcontext() if telemetry is None else telemetry.within({"traceparent": trace}):
            _declare(session, event, client)
            try:
                _catch_up(session, event, client, options)
            except Exception as error:  # whatever a store raises: what it notices is no duty
                log.error("store failed: %s", error, extra={"session": session.id})
            made = answer(session, event, client=client, asks=True)
    finally:
        if session.ledger.sink is not None:
            # A disk that is full, or gone, is no reason to wait.
            session.ledger.sink.flush(0.5)
    if not made and rules.wrong:
        return _message(f"the policy cannot be used, and the last one that could holds on: {rules.wrong}")
    if made or event.kind != "started":
        return made
    within = "the policy is inside of the workspace, where the agent may change it: "
    notes = [f"not held: {limits}"] if (limits := unheld(policy, MISSING)) else []
    notes += [f"{within}{options.policy}"] if rules.is_within(project) else []
    return _message("; ".join(notes)) if notes else made


def _catch_up(session: Session, event: Event, client: Client, options: Options) -> None:
    """
    Learn what the client did not tell.
    """
    event.agent = hidden_agent(session, event, client)
    own = share_of(session, event.agent)
    if own is not session:
        _declare(own, event, client)
    charge(own, event, client)
    close_lost(own, event)
    # The state of a session that nothing is told of is dropped. A server is shared by many machines: its owner prunes it.
    if event.kind == "started" and not is_url(options.store_path):
        _store(options.store_path).prune("30d")


def _declare(session: Session, event: Event, client: Client) -> None:
    tool = client.tool_of(event.tool) if event.tool else None
    known = session.ledger.chain.known
    # Where a policy lists the tools there are, a client makes none known.
    if tool is not None and (known is None or tool.name in known):
        session.calls.declare(tool, listed=False)


def _scopes(policy: Policy, options: Options) -> dict[str, str]:
    """
    Whose session it is, as far as the policy asks: a user who is not named is the one that this process is of.
    """
    owners = {"user": options.user, "tenant": options.tenant}
    if "user" in policy.scopes and not options.user:
        from getpass import getuser

        owners["user"] = getuser()
    return {name: own for name, own in owners.items() if own and name in policy.scopes}
