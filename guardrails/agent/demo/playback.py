"""
Play a recorded chat through the guarded loop: a scripted server gives the recorded assistant's turns, the executor the
recorded results.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.decision import Decision
from guardrails.core.envelope.envelope import Envelope
from guardrails.core.values.types import Denial
from guardrails.integrations.openai import run
from guardrails.policy.policy import Policy
from guardrails.sinks import Sink
from guardrails.testing.replies import Body, Calls, Reply, ScriptedCall, Text
from guardrails.testing.scripted_openai import ScriptedOpenAI

from .client import scripted_client
from .timeless import Clock, timeless
from .transcript import RecordedCall, RecordedTurn, Transcript


if TYPE_CHECKING:
    from openai import OpenAI

MODEL: Final = "recorded-model"
NOT_RECORDED: Final = "(The recorded model was never asked for its final answer here.)"
LACKING: Final = "the recording has no result for this call"


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """
    One recorded call, and what became of it.
    """

    id: str
    tool: str
    arguments: str
    decision: Literal["ran", "denied"]
    code: str | None
    """Of the denial."""
    reason: str | None
    """What the model was told."""
    observed: tuple[str, ...]
    """Codes of what guards in observe mode would have denied."""
    recorded: str | None
    """The recorded result; None: there is none."""
    read: str
    """The tool message that the model would have read."""


@dataclass(frozen=True, slots=True)
class Played:
    """
    A recorded chat, played.
    """

    name: str
    recorded_calls: int
    calls: tuple[PlayedCall, ...]
    """Those that the loop came to."""
    code: str | None
    """Of what exhausted the session, so that the final answer was asked for; None: nothing did."""
    notes: tuple[str, ...]

    @property
    def denied(self) -> list[PlayedCall]:
        """
        The calls that were stopped.
        """
        return [call for call in self.calls if call.decision == "denied"]

    def to_dict(self) -> dict[str, Any]:
        """
        The same for another program.
        """
        return asdict(self)


@dataclass(slots=True)
class _Tape:
    """
    The place that the playback of one chat has reached.
    """

    clock: Clock
    turns: deque[RecordedTurn] = field(default_factory=deque)
    requested: list[RecordedCall] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def reply(self, body: Body, n: int) -> Reply:
        self.clock.advance()
        # Without recorded usage none is made up: what it cost is not judged.
        if body.get("tool_choice") == "none" or not self.turns:
            return Text(NOT_RECORDED, usage=False)
        turn = self.turns.popleft()
        if not turn.calls:
            return Text(turn.text, usage=False)
        self.requested += turn.calls
        wire = [ScriptedCall(call.tool, call.arguments, call.id) for call in turn.calls]
        return Calls(*wire, text=turn.text, usage=False)

    def execute(self, tool: str, arguments: Any) -> Any:
        # The calls of a turn run one after another, each right after its decision.
        recorded = self.requested[len(self.decisions) - 1].result
        return Envelope.error("other", LACKING) if recorded is None else recorded


@contextmanager
def player(policy: Policy, records: Sink | None = None) -> Iterator["Player"]:
    """
    A `Player` with its server and client. Raises DemoError if openai is not installed.
    """
    tapes: list[_Tape] = []

    def script(body: Body, n: int) -> Reply:
        return tapes[-1].reply(body, n)

    with ScriptedOpenAI(script) as server, scripted_client(server) as client:
        yield Player(client, timeless(policy), records, tapes)


@dataclass(slots=True)
class Player:
    """
    Plays recorded chats, each in a session of its own.
    """

    client: "OpenAI"
    policy: Policy
    records: Sink | None
    _tapes: list[_Tape]

    def play(self, transcript: Transcript) -> Played:
        """
        Play one chat; every recorded call is decided as if it were made now, and only those that may run get their
        recorded result.
        """
        tape = _Tape(Clock())
        self._tapes.append(tape)
        messages: list[Any] = []
        with self.policy.session(
            f"transcript-{len(self._tapes)}",
            records=self.records,
            clock=tape.clock,
            on_decision=tape.decisions.append,
        ) as session:
            for exchange in transcript.exchanges:
                messages += exchange.prompt
                tape.turns = deque(exchange.turns)
                run(
                    self.client,
                    session,
                    model=MODEL,
                    messages=messages,
                    tools=transcript.tools,
                    execute=tape.execute,
                    max_tool_iterations=len(exchange.turns) + 1,
                )
            code = session.exhausted
        return Played(
            name=transcript.name,
            recorded_calls=len(transcript.calls),
            calls=tuple(_calls(tape, messages)),
            code=code,
            notes=transcript.notes,
        )


def _calls(tape: _Tape, messages: Iterable[Any]) -> Iterator[PlayedCall]:
    read = (message["content"] for message in messages if message["role"] == "tool")
    for call, decision, text in zip(tape.requested, tape.decisions, read, strict=True):
        denial = decision.denial
        yield PlayedCall(
            id=call.id,
            tool=call.tool,
            arguments=call.arguments,
            decision="ran" if denial is None else "denied",
            code=decision.code,
            reason=None if denial is None else _reason(denial),
            observed=tuple(observed.code for observed in decision.observed),
            recorded=call.result,
            read=text,
        )


def _reason(denial: Denial) -> str:
    problems = [f"{problem['field']}: {problem['message']}" for problem in denial.details.get("errors") or ()]
    return f"{denial.message} {'; '.join(problems)}".rstrip()
