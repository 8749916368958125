"""
Scenes of `scenes.yaml`: what a host and its user say to sessions, line by line, and what they hear.

A line is `[session:] verb words... -> answer`. Words are `name=value`, `#id` of a call, or plain; `= value` is how a call ends. The answer is
that of the verb, `~text` a part of it, and none is not looked at. A scene has a policy, and tools; its records replay to its decisions.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from guardrails import Envelope, MemorySink, MemoryStore, Policy, Success, Tool
from guardrails.errors import SessionError
from tests.conftest import FakeClock
from tests.core.guards.calls import gives
from tests.session.conftest import replays, state_of
from tests.tables import table


SCENES = [*yaml.safe_load_all(Path(__file__).with_name("scenes.yaml").read_text(encoding="utf-8"))]
FAILURES = {"timeout": TimeoutError("no answer"), "error": PermissionError("no")}


class Words(NamedTuple):
    """
    What is said of a *verb*: *plain* words, those with a *name*, the *id* of a call, and how it ends.
    """

    plain: list[Any]
    named: dict[str, Any]
    id: str | None
    end: Any

    @classmethod
    def of(cls, text: list[str], end: str) -> "Words":
        named = {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in text if "=" in word)}
        plain = [yaml.safe_load(word) for word in text if "=" not in word and word[0] != "#"]
        ends = Success("ok", cost_usd=float(end[1:])) if end.startswith("$") else FAILURES.get(end, end or "ok")
        return cls(plain, named, next((word[1:] for word in text if word[0] == "#"), None), ends)


class Scene:
    def __init__(self, scene: dict[str, Any], folder: Path, clock: FakeClock) -> None:
        file = folder / "policy.yaml"
        file.write_text(yaml.safe_dump({"version": 1, **scene["policy"]}))
        tools = [Tool(name=name, **declared) for name, declared in scene.get("tools", {}).items()]
        self.policy = Policy.load(file, tools=tools, reload=None)
        self.clock, self.sink, self.store = clock, MemorySink(), MemoryStore(live=0)
        self.sessions, self.decisions, self.numbers = dict[str, Any](), dict[str | None, Any](), count()
        self.heard: Any = None
        """The latest envelope."""

    def session(self, name: str) -> Any:
        if name not in self.sessions:
            scopes = dict.fromkeys(self.policy.scopes, "u") or None
            made = self.policy.session(name, clock=self.clock, store=self.store, records=self.sink, scopes=scopes)
            self.sessions[name] = made
        return self.sessions[name]

    def take(self, line: str) -> Any:
        said, _, end = line.partition(" = ")
        name, _, rest = said.rpartition(": ")
        verb, *text = rest.split()
        # All other states are packed by it.
        self.store.update(["another"], len)
        try:
            made = VERBS[verb](self, self.session(name or "s"), Words.of(text, end))
        except SessionError as error:
            return f"error: {error}"
        if not isinstance(made, Envelope):
            return made
        self.heard = made
        return "ok" if made.ok else made.code or made.error_type

    def calls(self, session: Any, words: Words, *, turns: bool = False, same: bool = False) -> int:
        """
        How many of so many calls work, each other than those before if they are not the *same*, and a turn of its own.
        """
        tries, tool, ran = words.plain[0], [*words.plain, "t"][1], 0
        for _ in range(tries):
            if turns:
                session.begin_turn(1)
            ran += session.call(tool, {"path": "notes.txt"} if same else {"n": next(self.numbers)}, gives(words.end)).ok
        return ran

    def decide(self, session: Any, words: Words) -> str:
        claim = words.named.pop("claim", False)
        made = self.decisions[words.id] = session.decide(*words.plain, words.named, id=words.id, claim=claim)
        return made.code or "ok"

    def child(self, parent: Any, words: Words) -> None:
        self.sessions[words.plain[0]] = parent.child(*words.plain, **words.named)


VERBS: dict[str, Callable[[Scene, Any, Words], Any]] = {
    "call": lambda _, s, words: s.call(*words.plain, words.named, gives(words.end), id=words.id),
    "calls": Scene.calls,
    "turns": lambda scene, s, words: scene.calls(s, words, turns=True),
    "looks": lambda scene, s, words: scene.calls(
        s, words._replace(plain=[*words.plain, "read_file"]), turns=True, same=True
    ),
    "decide": Scene.decide,
    "complete": lambda scene, s, words: s.complete(scene.decisions.get(words.id, words.id), words.end),
    "release": lambda _, s, words: s.calls.release(words.id),
    "approve": lambda _, s, words: s.approve(words.id or s.pending()[0]),
    "refuse": lambda _, s, words: s.refuse(words.id, reason=" ".join(words.plain)),
    "pending": lambda _, s, __: [one.id for one in s.pending()],
    "why": lambda _, s, __: s.pending()[0].reason,
    "turn": lambda _, s, words: s.begin_turn(*words.plain),
    "request": lambda _, s, __: s.request().code,
    "charge": lambda _, s, words: s.charge(model="m", **words.named).cost,
    "extend": lambda _, s, words: s.extend(**words.named),
    "go_on": lambda _, s, __: s.ledger.go_on(),
    "child": Scene.child,
    "close": lambda _, s, __: s.close(),
    "forget": lambda _, s, __: s.ledger.forget(),
    "wait": lambda scene, _, words: scene.clock.advance(*words.plain),
    "exhausted": lambda _, s, __: s.exhausted,
    "message": lambda _, s, __: s.ledger.limit_message,
    "retries": lambda scene, *_: [one["retry_source"] for one in scene.sink.records if one["event"] == "call"],
    "heard": lambda scene, _, words: getattr(scene.heard, *words.plain),
    "choice": lambda _, s, words: s.tool_choice(*words.plain),
    "progress": lambda _, s, words: s.ledger.progress[words.plain[0]] if words.plain else s.ledger.progress,
    "keeps": lambda scene, s, words: [getattr(state_of(scene.store, s.id), name) for name in words.plain],
}


@table("scene", SCENES)
def test_each_scene_is_as_its_lines_say(scene: dict[str, Any], tmp_path: Path, clock: FakeClock) -> None:
    stage = Scene(scene, tmp_path, clock)
    for line in scene["story"].strip().splitlines():
        said, _, expected = line.partition(" -> ")
        made = stage.take(said)
        if expected.startswith("~"):
            assert expected[1:] in str(made), line
        elif expected or str(made).startswith("error: "):
            assert made == yaml.safe_load(expected), line
    replays(stage.policy, stage.sink)
