"""
The codes of the guards against calls that bring nothing, and those about failures.
"""

from typing import Final

from guardrails.core.guards.repeats.loop_words import ALIKE, LOOPS, REFUSED, WORDS

from .explained import LATER, Explained


_USE: Final = "Use the previous result, change the arguments, or go on with the next step."
_MADE: Final = "This exact $tool call was already made earlier in this conversation. Use the previous result instead of calling again. "
_FREED: Final = "Yes, once a call has run that may have changed something, or the evidence is old (`settled_for`)."
_NUDGED: Final = "After `nudge` such calls it is told as a hint, after `deny` such calls the next is refused."

_PATTERNS: Final = {
    "identical": (
        "the exact call, with the same result",
        "The exact call was made before and gave the same result each time.",
        "4",
    ),
    "unrepaired": (
        "the exact call just failed, and nothing was done since",
        "The exact call has failed for a cause that lies in the call, and nothing was done that could remove it.",
        "3",
    ),
    "reread": (
        "it was just answered, and nothing was done since",
        "The exact call of a tool that reads was answered before, and nothing was done that could change the answer.",
        "3",
    ),
    "cycle": (
        "a cycle of calls",
        "The last two to five calls were made over and over, each time with the same results.",
        "6",
    ),
    "same_error": ("one tool, one error", "One tool has failed with one kind of error, call after call.", "12"),
    "sibling_errors": (
        "several tools, one error",
        "Several tools have failed with one kind of error, call after call.",
        "12",
    ),
    "unknown_tool": (
        "a tool that is not there",
        "The model goes on calling a tool, a skill or a method that is not there.",
        "6",
    ),
    "volatile_argument": (
        "only an id, a time or a label was new",
        "Calls that differ in an id, a time or a label only gave the same result.",
        "6",
    ),
    "reworded": ("worded alike, nothing new", "Calls that are worded alike brought the same result, or none.", "12"),
    "empty": ("nothing came back", "The last calls of one tool came back empty.", "20"),
}


def _loop(name: str, when: str, means: str, loosen: str) -> Explained:
    message, hint = WORDS[name]
    return Explained(
        code=f"{LOOPS}{name}",
        when=when,
        means=f"{means} {_NUDGED}",
        told=f"{message} {f'$advice {REFUSED}' if name in ALIKE else hint}",
        retry="Yes, once something has changed: another call has run, or its result is new.",
        settings=(f"loops.{name}.nudge", f"loops.{name}.deny"),
        loosen=f"loops: {{{name}: {{deny: {loosen}}}}}",
        off=f"loops: {{{name}: {{nudge: null, deny: null}}}}",
        page="guards/loops.md",
        status="duplicate_call_blocked" if name in ("identical", "unrepaired", "reread") else "denied",
    )


REPEATS: Final = (
    Explained(
        code="duplicates.window",
        when="`always`: a repeat within the window; status `duplicate_call_blocked`, or `denied` of what failed for a cause that may pass",
        means="The same tool was called with the same arguments within the last calls, and `rule: always` refuses any such repeat.",
        told=_MADE + _USE,
        retry="Yes, once it is out of the window. Under `rule: evidence` once something may have changed.",
        settings=("duplicates.rule", "duplicates.window", "tools.duplicates", "tools.polling"),
        loosen="duplicates: {rule: evidence, window: 20}",
        off="duplicates: {mode: off}",
        page="guards/duplicates.md",
        status="duplicate_call_blocked",
    ),
    Explained(
        code="duplicates.stable",
        when="`evidence`: of a stable tool, no work since",
        means="The tool is declared `stable`, so its earlier result is still right.",
        told=_MADE + _USE,
        retry="Yes, once a call has run that may have changed something.",
        settings=("duplicates.rule", "duplicates.window", "tools.stable"),
        loosen="tools: [{match: the_tool, stable: false}]",
        off="duplicates: {mode: off}",
        page="guards/duplicates.md",
        status="duplicate_call_blocked",
    ),
    Explained(
        code="duplicates.evidence",
        when="`evidence`: it gave the same twice, no work since",
        means="The last two identical calls gave the same result not long ago, and nothing was done since that could change it.",
        told=_MADE + _USE,
        retry=_FREED,
        settings=("duplicates.rule", "duplicates.window", "duplicates.settled_for", "tools.polling"),
        loosen="tools: [{match: the_tool, polling: true}]",
        off="duplicates: {mode: off}",
        page="guards/duplicates.md",
        status="duplicate_call_blocked",
    ),
    Explained(
        code="duplicates.in_flight",
        when="the identical call still runs",
        means="The identical call was admitted and has not ended, so its result comes with the first one. The engine says it without the guard, too.",
        told="This exact $tool call is still running. Its result comes with the first call. Wait for that result.",
        retry="Yes, once the first call has ended, or its admission has expired.",
        settings=("tools.timeout",),
        instead="Give the tool a shorter `timeout`, after which its admission expires.",
        page="guards/duplicates.md",
        status="duplicate_call_blocked",
    ),
    *(_loop(name, *said) for name, said in _PATTERNS.items()),
    Explained(
        code="loops.wait",
        when="a nudge only: nothing has changed while something is waited for",
        means="The exact call of a tool that waits for something gave the same answer again. It is never refused for that.",
        told=" ".join(WORDS["wait"]),
        retry="Yes: it ran.",
        settings=("loops.wait.nudge",),
        loosen="loops: {wait: {nudge: 10}}",
        off="loops: {wait: {nudge: null}}",
        page="guards/loops.md",
        kind="nudge",
        status="success",
    ),
    Explained(
        code="retryable.wait",
        when="the call came before its wait was over; `retryable: true` with the rest of the wait",
        means="The last attempt failed, and its envelope told how long to wait. The call came sooner.",
        told="The last attempt failed ($error); a retry makes sense in $wait s. Wait $wait s, then repeat the call, or do something else meanwhile.",
        retry=LATER,
        settings=("retryable.backoff", "retryable.max_wait"),
        loosen="retryable: {backoff: 100ms}",
        off="retryable: {mode: off}",
        page="guards/retryable.md",
    ),
    Explained(
        code="retryable.unknown",
        when="a hint: the same call was made before, acts, and never said how it ended",
        means="The call ran. An equal one was made before and nobody learned how it ended, so it may have happened twice.",
        told="The same call was made before and never said how it ended: it may have happened twice. Check that.",
        retry="It ran. Check what happened before making it again.",
        settings=("tools.idempotent", "tools.timeout"),
        loosen="tools: [{match: the_tool, idempotent: true}]",
        off="retryable: {mode: off}",
        page="guards/retryable.md",
        kind="nudge",
        status="success",
    ),
    Explained(
        code="retry_budget.empty",
        when="of a failure: it is not to be repeated. With `refuse`, of a denial: the retry did not run. In a scope, after its name",
        means="Too many retries of this tool brought nothing, so that more of them would only make an outage worse.",
        told="Too many retries of `$tool` failed: its retry budget is used up. Do not repeat it now. Go on without `$tool`, use another tool, or tell the user that it does not work.",
        retry="Not now. Successes and time fill the bucket again.",
        settings=("retry_budget.burst", "retry_budget.ratio", "retry_budget.min_per_minute", "retry_budget.refuse"),
        loosen="retry_budget: {burst: 50, min_per_minute: 10}",
        off="retry_budget: {mode: off}",
        page="guards/retry_budget.md",
        kind="failure",
        status="error",
    ),
)
