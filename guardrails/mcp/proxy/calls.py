"""
The calls that pass through a proxy, behind sessions: decided when they are asked for, settled when they are answered.
"""

import json
import time

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any, Final

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.guards.truncate import Truncate
from guardrails.core.result.kinds import kind_of
from guardrails.core.text.truncation import render
from guardrails.core.values.errors import GuardrailsError
from guardrails.core.values.logs import log
from guardrails.core.values.types import Failed
from guardrails.mcp.answers import RUN, answered, is_text, refused, says_nothing
from guardrails.mcp.outcomes import explained, is_question, outcome_of
from guardrails.mcp.pins.pins import Pins, Server, server_of
from guardrails.mcp.runs import PROCESS, STUCK_S, Run, Runs, is_stuck, watches
from guardrails.policy.policy import Policy
from guardrails.session.session import Session, scoped
from guardrails.session.steps import Limit

from .listed import Tools, with_room


VERSION: Final = "io.modelcontextprotocol/protocolVersion"
"""Key of a request's `_meta` by which a client of a stateless revision says which that is."""


class OpenCall:
    """
    A call that its server was asked for.
    """

    __slots__ = ("__weakref__", "arguments", "carrier", "decision", "id", "limit", "name", "session", "stateless")

    def __init__(self, id_: Any, name: str, arguments: Any, session: Session, decision: Decision, limit: Limit | None):
        self.id = id_
        self.name = name
        self.arguments = arguments
        self.session = session
        self.decision = decision
        self.limit = limit
        """How long it may take."""
        self.stateless = False
        self.carrier: dict[str, str] = {}
        """What names its span to the server, in `_meta`."""


class Calls:
    """
    The calls of one server's tools behind sessions of *policy*; *options* are those of `Policy.session`.

    All calls are of the session *named*; without one they are of the run that their client names, else of the process.
    The *pins* hold the descriptions that tools of *server* had when they were first seen; None: no tool is held.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        named: str | None = None,
        drop: bool = False,
        pins: Pins | None = None,
        server: Server | None = None,
        **options: Any,
    ) -> None:
        self._policy = policy
        self._runs = Runs(policy, **options)
        self._named = named
        self._clock: Callable[[], float] = options.get("clock") or time.time
        self._asked_at: float | None = None
        """When the session *named* was last asked for here, in seconds."""
        self._telemetry = options.get("telemetry")
        self._drop = drop
        self._tools = Tools()
        self._pins = pins
        self._server = server_of() if server is None else server

    @property
    def denies_on_error(self) -> bool:
        """
        Returns whether a guard that fails refuses its call.
        """
        return self._runs.sessions.denies_on_error

    def listed(self, result: Any) -> dict[str, Any] | None:
        """
        Know the tools of a *result* of `tools/list`. Returns what the client is told in its place, None if that is the same.
        """
        offered = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(offered, list):
            return None
        shown, held = offered, {}
        if self._pins is not None:
            seen = self._pins.look(self._server, [one for one in offered if isinstance(one, dict)])
            shown, held = [one.shown for one in seen], {one.name: one.held for one in seen if one.held}
        if watches(self._policy):
            # What is held was told all the same.
            self._tools.hear(offered)
            return None
        shown = (_without_promises(shown) if self._drop else with_room(shown)) or shown
        self._tools.hear(shown, held)
        return {**result, "tools": shown} if shown != offered else None

    def changed(self) -> None:
        """
        Know that the server's tools are not what they were.
        """
        self._tools.forget_arguments()

    def ask(self, id_: Any, params: Any, run: Run | None = None) -> OpenCall | dict[str, Any] | None:
        """
        Decide on the call that a client asks for by *params*; its *run* is known otherwise. Returns the open call, or
        the result that refuses it. None: it is no call, as its server will say.
        """
        name = params.get("name") if isinstance(params, dict) else None
        if type(name) is not str:
            return None
        arguments, meta = params.get("arguments"), params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        session = self._session(meta, run)
        tool = self._tools.declared(name)
        if self._pins is not None and not watches(self._policy) and (tool.held or self._tools.of(name) is None):
            why = self._pins.reason(self._server, name)
            if tool.held and why == "":
                # Somebody has allowed it meanwhile.
                tool = self._tools.released(name)
            elif why and not tool.held:
                # Its client knows it from elsewhere, such as a list of before.
                tool = replace(tool, held=why)
        if "inputResponses" in params or "requestState" in params:
            # It carries what its client was asked for, and is the same call again, as often as the tool asks.
            session.calls.declare(tool)
            session = scoped(session, {}, [replace(tool, repeats="allow")])
        else:
            session.calls.declare(tool)
        telemetry = self._telemetry
        with nullcontext() if telemetry is None else telemetry.within(meta):
            decision = session.decide(name, {} if arguments is None else arguments, claim=True)
        if decision.envelope is not None:
            return _modern(refused(decision.envelope), stateless=VERSION in meta)
        made = OpenCall(id_, name, arguments, session, decision, session.calls.limit(decision))
        made.stateless = VERSION in meta
        if telemetry is not None:
            made.carrier = telemetry.carrier(decision)
        return made

    def answer(self, call: OpenCall, given: Any) -> Mapping[str, Any] | None:
        """
        Settle *call* by the result *given* by its server. Returns what the client is told in its place, None if that is the same.
        """
        result = given
        if is_question(result):
            call.session.calls.suspend(call.decision)
            return None
        if not isinstance(result, dict) or "content" not in result:
            # A handle of a task, which is another each time, or what is no result of a tool.
            self._complete(call, result)
            return None
        listed = self._tools.of(call.name)
        schema = None if listed is None else listed.input_schema
        value = outcome_of(call.name, call.arguments, result, schema=schema, listed=self._tools)
        envelope = self._complete(call, value)
        if envelope is None or watches(self._policy):
            return None
        if result.get("isError") is True:
            return refused(envelope, result)
        result = self._shortened(call.name, result) if envelope.cut is None else result
        if says_nothing(envelope, value):
            return result if result is not given else None
        with suppress(ValueError):
            made = dict(answered(envelope, result, value, self._tools.output_schema(call.name)))
            if self._drop and envelope.cut is not None:
                made.pop("structuredContent", None)
            return made
        return refused(envelope, result)

    def fail(self, call: OpenCall, error: Any) -> None:
        """
        Settle *call* by the JSON-RPC *error* that its server answered, which the client is told as it is.
        """
        said = error if isinstance(error, dict) else {}
        code, message = said.get("code"), str(said.get("message") or "the server failed")
        kind = kind_of(code) if type(code) is int else None
        listed = self._tools.of(call.name)
        schema = None if listed is None else listed.input_schema
        failed = Failed(message, error_type=kind)
        self._complete(call, explained(call.name, call.arguments, failed, kind, schema=schema, listed=self._tools))

    def end(self, call: OpenCall, outcome: object) -> dict[str, Any] | None:
        """
        Settle *call*, which its server did not answer, by *outcome*. Returns the result that its client is told.
        """
        envelope = self._complete(call, outcome)
        return None if envelope is None else _modern(refused(envelope), stateless=call.stateless)

    def drop(self, call: OpenCall) -> None:
        """
        Settle *call*, for whose answer nobody waits any more: it stays counted.
        """
        self._complete(call, Failed("cancelled by the client", error_type="cancelled"))

    def forget(self, run: Run) -> None:
        """
        Forget *run*, which nobody can name again.
        """
        sessions = self._runs.sessions
        sessions.end(sessions.of(run.name))

    def close(self) -> None:
        """
        Flush the records, and forget the calls that named no run.
        """
        self._runs.sessions.close()

    def _session(self, meta: Mapping[str, Any], run: Run | None) -> Session:
        if self._named is not None:
            return self._of_operator(self._named)
        said = meta.get(RUN)
        if said is not None:
            # A name is one of whoever says it, if that is known.
            run = Run(str(said) if run is None or run.named else json.dumps([run.name, said]), named=True)
        return self._runs.session(Run(PROCESS, named=False) if run is None else run)

    def _of_operator(self, name: str) -> Session:
        """
        The session that all calls are of. Nobody else could end a pause of it, so that one whose model was stuck, or
        ran away, goes on for the next caller.
        """
        session, now, before = self._runs.session(Run(name, named=True)), self._clock(), self._asked_at
        self._asked_at = now
        if (before is None or now - before > STUCK_S) and is_stuck(session):
            with suppress(GuardrailsError):  # what is wrong with the store, the call hears of
                session.extend()
        return session

    def _shortened(self, name: str, result: dict[str, Any]) -> dict[str, Any]:
        """
        Returns *result* with texts beside its structured content, in the room that the policy gives to one result. Some
        clients show them in its place.
        """
        content = result.get("content")
        texts = [block for block in content if is_text(block)] if isinstance(content, list) else []
        guards = self._policy.chain.plan(name).guards
        room = next((one.max_bytes for one in guards if isinstance(one, Truncate) and one.mode == "enforce"), None)
        if room is None or result.get("structuredContent") is None or sum(map(_length, texts)) <= room:
            return result
        joined = "\n".join(block["text"] for block in texts if isinstance(block.get("text"), str))
        text = render(joined, room).text
        kept = [block for block in content or () if not is_text(block)]
        return {**result, "content": [{"type": "text", "text": text}, *kept]}

    def _complete(self, call: OpenCall, outcome: object) -> Envelope | None:
        try:
            return call.session.complete(call.decision, outcome)
        except GuardrailsError as error:
            # The tool has run: its result is never lost.
            log.error("a call could not be settled: %s", error, extra={"session": call.session.id})
            return None


def _modern(result: dict[str, Any], *, stateless: bool) -> dict[str, Any]:
    return {"resultType": "complete", **result} if stateless else result


def _without_promises(offered: list[Any]) -> list[Any] | None:
    made = [
        {key: said for key, said in one.items() if key != "outputSchema"} if isinstance(one, dict) else one
        for one in offered
    ]
    return made if made != offered else None


def _length(block: Mapping[str, Any]) -> int:
    said = block.get("text")
    return len(said) if isinstance(said, str) else 0
