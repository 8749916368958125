"""
What is explained of a code is what happens: it is said, in these words, and the lines that switch it off do.
"""

import re

from collections.abc import Callable
from pathlib import Path
from typing import Any

from guardrails import Envelope, Policy, Session
from guardrails.cli.codes import CODES, Explained
from tests.tables import table


class Scene:
    """
    A session on a clock of its own, in which tools give what is wanted of them.
    """

    def __init__(self, policy: Policy) -> None:
        self.now = 1_800_000_000.0
        self.session: Session = policy.session("scene", clock=lambda: self.now)

    def call(self, tool: str, result: Any = "ok", *, after: float = 1, turn: bool = True, **arguments: Any) -> Envelope:
        def execute(name: str, given: Any) -> Any:
            if isinstance(result, Exception):
                raise result
            return result

        self.now += after
        if turn:
            self.session.begin_turn()
        return self.session.call(tool, arguments, execute)

    def calls(
        self, times: int, tool: str = "act", result: Any = None, *, after: float = 1, **arguments: Any
    ) -> Envelope:
        """
        So many calls, each with arguments and a result of its own unless they are given; the last envelope.
        """
        for number in range(times):
            own = arguments or {"n": f"{number} of {number * 7919}"}
            said = self.call(tool, f"part {number}" if result is None else result, after=after, **own)
        return said


def failing(
    times: int, error: Exception, tools: tuple[str, ...] = ("act",), **arguments: Any
) -> Callable[[Scene], Envelope]:
    def play(scene: Scene) -> Envelope:
        for number in range(times):
            own = arguments or {"word": WORDS[number % len(WORDS)] * (1 + number // len(WORDS))}
            said = scene.call(tools[number % len(tools)], error, **own)
        return said

    return play


WORDS = ("fuji", "lake", "inn", "harbour", "ticket", "market", "violin", "paper", "onyx", "zebra", "quartz", "mango")
MISSING = FileNotFoundError("no such thing")
TOOL = 'tools: [{match: "act", %s}]'
COMMAND = 'tools: [{match: "run", commands: [command]}]'
PATH = 'tools: [{match: "read", paths: [path]}]'


def approved(answer: str) -> Callable[[Scene], Envelope]:
    def play(scene: Scene) -> Envelope:
        said = scene.call("act", n=1)
        if answer == "refuse":
            for waiting in scene.session.pending():
                scene.session.refuse(waiting, reason="no")
        elif answer == "expire":
            scene.now += 61
        return said if answer == "ask" else scene.call("act", n=1)

    return play


def cycling(scene: Scene) -> Envelope:
    for number in range(8):
        said = scene.call("ab"[number % 2] + "_act", f"result {number % 2}", of="x")
    return said


def tokens(scene: Scene) -> Envelope:
    scene.session.charge(model="m", usage={"prompt_tokens": 50}, cost_usd=1)
    return scene.call("act")


def unpriced(scene: Scene) -> Envelope:
    scene.session.charge(model="m", usage={"prompt_tokens": 50})
    return scene.call("act")


def requested(scene: Scene) -> Envelope:
    for _ in range(4):
        scene.session.request()
    return scene.call("act", after=0)


def charged(scene: Scene) -> Envelope:
    scene.session.charge(model="m", usage={"prompt_tokens": 5_000}, cost_usd=0)
    return scene.call("act", after=0)


def refused(scene: Scene) -> Envelope:
    for _ in range(4):
        said = scene.call("act", n=1)
    return said


def empty_bucket(scene: Scene) -> Envelope:
    for number in range(3):
        said = scene.call("act", ConnectionError("no route to host"), n=number)
    return said


SCENES: dict[str, tuple[str, Callable[[Scene], Envelope]]] = {
    "tool_filter.deny": ("tool_filter: {deny: [act]}", lambda s: s.call("act")),
    "tool_filter.allow": ("tool_filter: {allow: [look]}", lambda s: s.call("act")),
    "workspace.root": (f"workspace: {{}}\n{PATH}", lambda s: s.call("read", path="../../etc/passwd")),
    "workspace.path": (f"workspace: {{}}\n{PATH}", lambda s: s.call("read", path="~/x")),
    "shell.deny": (f"shell: {{deny: [sudo]}}\n{COMMAND}", lambda s: s.call("run", command="sudo ls")),
    "shell.allow": (f"shell: {{allow: [git status]}}\n{COMMAND}", lambda s: s.call("run", command="make")),
    "shell.undecidable": (f"shell: {{deny: [sudo]}}\n{COMMAND}", lambda s: s.call("run", command="$X a")),
    "shell.unreadable": (f"shell: {{deny: [sudo]}}\n{COMMAND}", lambda s: s.call("run", command="echo 'a")),
    "approve.pending": ("approve: [act]", approved("ask")),
    "approve.refused": ("approve: [act]", approved("refuse")),
    "approve.expired": ("approve: {tools: [act], expires: 60s}", approved("expire")),
    "held.tool": (TOOL % "held: not before the audit", lambda s: s.call("act")),
    "budget.max_calls": ("budget: {max_calls: 1}", lambda s: s.calls(2)),
    "budget.max_turns": ("budget: {max_turns: 1}", lambda s: s.calls(2)),
    "budget.max_cost_usd": ("budget: {max_cost_usd: 0.5}", tokens),
    "budget.max_tokens": ("budget: {max_tokens: 10}", tokens),
    "budget.max_elapsed": ("budget: {max_elapsed: 10s}", lambda s: s.calls(2, after=20)),
    "budget.unpriced": ("budget: {max_cost_usd: 5}", unpriced),
    "tools.budget.max_calls": (TOOL % "budget: {max_calls: 1}", lambda s: s.calls(2)),
    "tools.budget.max_turns": (TOOL % "budget: {max_turns: 1}", lambda s: s.calls(2)),
    "tools.budget.max_cost_usd": (TOOL % "cost_usd: 1, budget: {max_cost_usd: 1.5}", lambda s: s.calls(2)),
    "tools.budget.max_tokens": (TOOL % "tokens: 10, budget: {max_tokens: 15}", lambda s: s.calls(2)),
    "growth.max_calls_per_second": ("growth: {max_calls_per_second: 2}", lambda s: s.calls(4, after=0)),
    "growth.max_requests_per_second": ("growth: {max_requests_per_second: 2}", requested),
    "growth.max_tokens_per_minute": ("growth: {max_tokens_per_minute: 1000}", charged),
    "rate.max_calls_per_second": ("rate: {max_calls_per_second: 2}", lambda s: s.calls(4, after=0)),
    "rate.max_calls_per_minute": ("rate: {max_calls_per_minute: 2}", lambda s: s.calls(4, after=0)),
    "tools.rate.max_calls_per_second": (TOOL % "rate: {max_calls_per_second: 2}", lambda s: s.calls(4, after=0)),
    "tools.rate.max_calls_per_minute": (TOOL % "rate: {max_calls_per_minute: 2}", lambda s: s.calls(4, after=0)),
    "streak.max_same": ("streak: {max_same: 2}", lambda s: s.calls(3)),
    "streak.max_failures": ("streak: {max_failures: 2}", failing(3, MISSING)),
    "denials.max_turns_in_a_row": (
        "denials: {}\nstreak: {max_same: 1}",
        lambda s: (s.call("act"), refused(s), refused(s))[2],
    ),
    "duplicates.window": ("duplicates: {rule: always}", lambda s: s.calls(2, n=1, result="same")),
    "duplicates.stable": (
        'duplicates: {rule: evidence}\ntools: [{match: "act", stable: true}]',
        lambda s: s.calls(2, n=1, result="same"),
    ),
    "duplicates.evidence": ("duplicates: {rule: evidence}", lambda s: s.calls(3, n=1, result="same")),
    "loops.identical": ("loops: {}", lambda s: s.calls(3, n=1, result="same")),
    "loops.unrepaired": ("loops: {}", lambda s: (s.call("act", MISSING, n=1), s.call("act", MISSING, n=1))[1]),
    "loops.reread": (
        'loops: {reread: {deny: 1}}\ntools: [{match: "act", read_only: true}]',
        lambda s: s.calls(2, n=1, result="same"),
    ),
    "loops.cycle": ("loops: {}", cycling),
    "loops.same_error": ("loops: {}", failing(8, MISSING)),
    "loops.sibling_errors": ("loops: {}", failing(9, MISSING, ("a_act", "b_act"))),
    "loops.volatile_argument": (
        "loops: {}",
        lambda s: [s.call("act", "same", q="fuji", request_id=f"{n}f3c-{n}") for n in range(5)][-1],
    ),
    "loops.empty": (
        "loops: {}",
        lambda s: [s.call("find", [], q=WORDS[n % 12] * (1 + n // 12)) for n in range(13)][-1],
    ),
    "loops.wait": (
        'loops: {}\ntools: [{match: "act", polling: true}]',
        lambda s: s.calls(5, n=1, result="running"),
    ),
    "retryable.wait": (
        "retryable: {}",
        lambda s: (s.call("act", TimeoutError("slow"), n=1), s.call("act", n=1, after=0.1))[1],
    ),
    "retry_budget.empty": ("retryable: {}\nretry_budget: {burst: 1}", empty_bucket),
}
NOT_PLAYED = {
    # They need schemas, a call that still runs or is lost, or hours: their guards' tests have them.
    *("duplicates.in_flight", "retryable.unknown", "shell.fork_bomb"),
    *(
        "tool_filter.unknown",
        "validation.arguments",
        "tools.budget.max_elapsed",
        "loops.unknown_tool",
        "loops.reworded",
    ),
}


def played(code: str, path: Path, more: str = "") -> Envelope:
    lines, play = SCENES[code]
    (path / "base.yaml").write_text(f"version: 1\n{lines}\n")
    (path / "own.yaml").write_text(f"version: 1\nextends: base.yaml\n{more}\n")
    return play(Scene(Policy.load(path / "own.yaml")))


def read(envelope: Envelope) -> str:
    said = envelope.to_dict()
    parts = said.get("message") or said.get("limit_message"), said.get("next_action_hint")
    return " ".join(part for part in parts if part)


def words(told: str) -> str:
    return re.sub(r"\\\$[a-z]+", r"(?s:.+?)", re.escape(told))


@table("code", SCENES)
def test_a_code_is_said_in_the_words_that_are_explained(code: str, tmp_path: Path) -> None:
    one = CODES[code]
    said = played(code, tmp_path)
    # Some loops are told only, unless a tool surely reads.
    if one.kind == "denial" and code not in ("loops.cycle", "loops.volatile_argument"):
        assert said.code == code
        assert said.status == one.status
    assert re.search(words(one.told), read(said)), (one.told, read(said))


@table("code", [code for code in SCENES if CODES[code].off])
def test_the_lines_that_switch_a_code_off_do(code: str, tmp_path: Path) -> None:
    one: Explained = CODES[code]
    own = one.off
    for name in ("pay_*", "search_*", "the_tool"):
        own = own.replace(f'"{name}"', "act").replace(f"match: {name}", "match: act")
    said = played(code, tmp_path, own)
    assert said.code != code
    assert not re.search(words(one.told), read(said))


def test_all_codes_of_guards_are_played_but_a_few() -> None:
    of_guards = {code for code, one in CODES.items() if one.page.startswith("guards/") and not code.endswith(".error")}
    assert of_guards - set(SCENES) - {"session.closed"} == NOT_PLAYED
