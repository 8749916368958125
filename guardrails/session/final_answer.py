"""
Ends a loop, both the library's and a host's: tools off, asked once more if there is no answer, then the session's
digest.
"""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from guardrails.core.envelope import Envelope
from guardrails.core.refusals import FINISH, FORCED_ASKS
from guardrails.core.values.types import Denial


if TYPE_CHECKING:
    from guardrails.session.session import Session


ToolChoice = str | Mapping[str, Any] | None
"""`tool_choice` as a wire has it; None leaves the key out."""
Strategy = Callable[[int, int], ToolChoice]
"""Of the calls and turns so far, the tool choice of the next request."""


def forces(choice: ToolChoice) -> bool:
    """
    Returns whether *choice* makes the model call a tool.

    A `required` forces one, and so does a named tool: `{"type": "function", ...}`, `custom`, `mcp`, a hosted tool, or
    its bare name in some hosts. So does `allowed_tools` in mode `required`, in the nested form of chat.completions and
    the flat one of responses.
    """
    if isinstance(choice, Mapping):
        nested, kind = choice.get("allowed_tools", choice), choice.get("type", "")
        choice = nested.get("mode") if kind == "allowed_tools" and isinstance(nested, Mapping) else kind
    return choice not in (None, "auto", "none")


Ended = Literal["answered", "forced", "digest"]
Meaning = Literal["run", "answered", "again", "digest"]

SILENT_CODE: Final = "loop.no_answer"
_NOT_MADE: Final = "This call was not made: the final answer was asked for."


@dataclass(slots=True)
class FinalAnswer:
    """
    The end of one loop of a *session*::

        final = FinalAnswer(session)
        while True:
            response = ask the model; with tools off if final.forced
            match final.take(response.text, response.calls):
                case "run": run its calls through the session
                case "again": answer each of its calls with final.refusal(...), run none
                case "answered" | "digest": return final.answer
    """

    session: "Session"
    code: str | None = field(default=None, init=False)
    """Why the final answer is forced; None while it is not."""
    ended: Ended | None = field(default=None, init=False)
    """answered: of its own accord; forced: with tools off; digest: not at all. None while the loop goes on."""
    text: str | None = field(default=None, init=False)
    """The model's answer."""
    first: bool = field(default=True, init=False)
    """No response was taken yet: a choice that forces a tool still holds."""
    _wasted: int = field(default=0, init=False)

    @property
    def forced(self) -> bool:
        """
        Whether tools are to be off for the request that is made now: the session is exhausted, or the model was silent.
        Read it before each request. Once they are off they stay off.
        """
        return self.code is not None or self.force(self.session.exhausted)

    def force(self, code: str | None) -> bool:
        """
        Ask for the final answer from now on because of *code*, unless that is None. Returns whether it is asked for.
        """
        self.code = self.code or code
        return self.code is not None

    def take(self, text: str | None, calls: int | Sized = 0) -> Meaning:
        """
        Returns the meaning of a response with *text* and *calls*, which are the calls or their number.

        With `run` the calls are to be run. With `answered` it is the answer. With `again` no call is run, and the model
        is asked once more, with tools off. With `digest` no call is run, and the answer is the session's digest.
        """
        self.first, self.ended, self.text = False, None, None
        if calls and self.code is None:
            return "run"
        if not calls and text is not None and text.strip():
            self.ended, self.text = "answered" if self.code is None else "forced", text
            return "answered"
        self.force(SILENT_CODE)
        self._wasted += 1
        if self._wasted < FORCED_ASKS:
            return "again"
        self.ended = "digest"
        return "digest"

    @property
    def answer(self) -> str | None:
        """
        The answer to end with: the model's, or the session's digest in its place. None while the loop goes on.
        """
        return self.session.digest() if self.ended == "digest" else self.text

    def tool_choice(self, requested: ToolChoice = None, *, strategy: Strategy | None = None) -> ToolChoice:
        """
        Returns the value to send as `tool_choice` with the request that is made now. It is `none` if it is `forced`,
        else as `session.tool_choice` says for *requested* and *strategy*.
        """
        if self.forced:
            return "none"
        return self.session.tool_choice(requested, first=self.first, strategy=strategy)

    def refusal(self, tool: str, arguments: Any, *, id: str | None = None) -> Envelope:
        """
        Returns the envelope that answers a call which came although the final answer was asked for. An exhausted session refuses it
        by its own code, and records it.
        """
        session = self.session
        if session.exhausted is not None:
            decision = session.decide(tool, arguments, id=id)
            if decision.envelope is not None:
                return decision.envelope
            # It was extended meanwhile.
            session.ledger.release(decision)
        code = self.code or SILENT_CODE
        return Envelope.refusal(Denial(code=code, status="limit_reached", message=_NOT_MADE, hint=FINISH))
