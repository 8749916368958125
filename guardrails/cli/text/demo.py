"""
The texts that `guardrails demo` prints for a person.
"""

import json

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from guardrails.agent.demo.comparison import Comparison, Figures, parsed
from guardrails.agent.demo.playback import Played
from guardrails.agent.demo.stuck_agent import QUESTION
from guardrails.agent.demo.timeless import NOT_JUDGED

from .printing import heading, paragraph, printable, table


_INDENT: Final = " " * 6


def comparison_text(compared: Comparison, *, scripted: bool) -> str:
    """
    Both runs side by side, what the model read, and its answer.
    """
    who = "The same stuck agent" if scripted else f"`{compared.model}`"
    blocks = [
        paragraph(f"{who}, through the openai client: once unguarded, once behind the policy `{compared.policy}`."),
        paragraph(f"It is asked: {QUESTION}"),
        table(
            [
                ("", "unguarded", "guarded"),
                *zip(
                    ("model requests", "tool executions", "tokens", "cost", "time", "how it ended"),
                    _cells(compared.unguarded),
                    _cells(compared.guarded),
                    strict=True,
                ),
            ]
        ),
        paragraph(_price(compared, scripted=scripted)),
        heading("What the model read in the guarded run"),
        *_read(compared.read),
        heading("Its final answer"),
        paragraph(compared.guarded.answer or "(none)", indent="  "),
    ]
    return "\n\n".join(blocks)


def _cells(run: Figures) -> tuple[str, ...]:
    return (
        f"{run.requests:,}",
        f"{run.executions:,}",
        f"{run.tokens:,}",
        "unknown" if run.cost_usd is None else f"${run.cost_usd:.4f}",
        f"{run.seconds:.2f} s",
        _ended(run),
    )


def _ended(run: Figures) -> str:
    match run.ended:
        case "stopped":
            return f"stopped by the demo after {run.requests} requests, without an answer; nothing else would have"
        case "answered":
            return "with an answer"
        case "forced":
            return f"with an answer, asked for because of {run.code}"
        case "digest":
            return f"with the session's digest, since the model gave no answer ({run.code})"


def _price(compared: Comparison, *, scripted: bool) -> str:
    if compared.usd_per_mtok is None:
        return f"Nobody said what `{compared.model}` costs: a policy file can, under `prices`."
    read, written = compared.usd_per_mtok
    made_up = " The price is made up, and tokens are counted as four characters each." if scripted else ""
    return f"Cost at ${read:.2f} for a million tokens in and ${written:.2f} out.{made_up}"


def _read(texts: Sequence[str]) -> Iterator[str]:
    """
    One envelope of each kind in a row; those that only repeat it are counted.
    """
    numbered = enumerate(map(parsed, texts), 1)
    for _, alike in groupby(numbered, key=lambda one: _kind(one[1])):
        first, *others = alike
        numbers = f"call {first[0]}" if not others else f"calls {first[0]} to {others[-1][0]} alike; the first:"
        yield "\n".join([f"  {numbers}", *_fields(first[1])])


def _kind(envelope: Any) -> Any:
    if not isinstance(envelope, dict):
        return None
    return envelope.get("status"), envelope.get("code"), envelope.get("limit_message")


def _fields(envelope: Any) -> Iterator[str]:
    if not isinstance(envelope, dict):
        yield paragraph(str(envelope), indent="    ")
        return
    for name, value in envelope.items():
        shown = json.dumps(value, ensure_ascii=False)
        yield paragraph(f"{name}: {shown}", indent="    ", hanging="      ")


def played_text(played: Played) -> str:
    """
    One recorded chat: what became of each call, and what the recording lacks.
    """
    ran = len(played.calls) - len(played.denied)
    lines = [heading(f"{played.name}: {played.recorded_calls} calls, {ran} ran, {len(played.denied)} denied")]
    column = max((len(printable(call.tool)) for call in played.calls), default=0)
    for number, call in enumerate(played.calls, 1):
        said = [call.decision, call.code, *(f"observed {code}" for code in call.observed)]
        said += ["no recorded result"] if call.recorded is None else []
        lines.append(f"{number:>4}  {printable(call.tool).ljust(column)}  {'  '.join(filter(None, said))}")
        if call.reason is not None:
            lines.append(paragraph(_short(call.arguments), indent=_INDENT))
            lines.append(paragraph(call.reason, indent=_INDENT))
    if played.code is not None:
        left = played.recorded_calls - len(played.calls)
        more = f"; {left} recorded calls were not come to" if left else ""
        said_so = f"The session was over, and the final answer asked for, because of {played.code}{more}."
        lines.append(paragraph(said_so, indent=_INDENT))
    lines += [paragraph(f"The recording {note}.", indent=_INDENT) for note in played.notes]
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}..."


def summary_text(played: Sequence[Played], policy: str) -> str:
    """
    All recorded chats together, and what could not be judged.
    """
    calls = sum(len(one.calls) for one in played)
    denied = sum(len(one.denied) for one in played)
    chats = f"{len(played)} recorded chat{'' if len(played) == 1 else 's'}"
    said = f"{denied} of {calls} calls of {chats} denied by the policy `{policy}`. Not judged: {NOT_JUDGED}."
    return "\n" + paragraph(said)
