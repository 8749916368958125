"""
Random worlds in which looks and works meet: how often is a look refused though its object has changed since?

A world is a handful of objects with versions. A look shows the version of one object, a work may change it. Their tools have
neutral or ordinary names, or are one shell that does both. Works take at once, late, in part, now and then, or not at all.
"""

import random

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from guardrails import Policy, Tool
from guardrails.core.decision import Decision


NAMES: Final = tuple(
    pair.split()
    for pair in [
        "alpha beta",
        " thing_1 thing_2",
        " view act",
        " read_file edit_file",
        " list_items create_item",
        " get_cart add_to_cart",
        "\n    search search_replace",
        " fetch_page fetch_or_create_page",
        " find_user find_and_update_user",
        " get_ticket get_next_ticket",
        "\n    lookup lookup_then_insert",
        " srv__get_row srv__upsert_row",
        " getRow putRow",
        " run_tests apply_patch",
    ]
)
"""(look, work)"""
REPLIES: Final = ("ok", "", "done: {}", "updated", None)
STEPS: Final = 48


class World:
    """
    Objects by name, and what each look showed the last time: the versions that differ since are what a refusal hides.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.dice = seed, random.Random(seed)
        chance, choice = self.dice.random, self.dice.choice
        self.versions = {f"o{n}": self.dice.randrange(2) for n in range(self.dice.randint(1, 4))}
        self.shown: dict[str, int] = {}
        self.shell, self.names, self.declared = chance() < 0.25, choice(NAMES), chance() < 0.3
        self.takes, self.fails = choice((1.0, 1.0, 0.7, 0.3, 0.1)), choice((0.0, 0.0, 0.2))
        self.reply: str | None = choice(REPLIES)

    def look(self, name: str) -> tuple[str, dict[str, Any]]:
        """
        The call that shows the object *name*.
        """
        return ("exec_shell", {"command": f"show {name}"}) if self.shell else (self.names[0], {"id": name})

    def work(self, name: str) -> tuple[str, dict[str, Any]]:
        """
        A call that may change the object *name*; often the same one.
        """
        how = self.dice.choice(("a", "a", "b"))
        if self.shell:
            return "exec_shell", {"command": f"change {name} {how}"}
        return self.names[1], {"id": name, "how": how}

    def seen(self, name: str) -> Any:
        """
        What a look at *name* shows now, an exception if there is no such object.
        """
        self.shown[name] = self.versions[name]
        return f"{name} v{self.versions[name]}" if self.versions[name] else LookupError(f"{name} not found")

    def changed(self, name: str) -> Any:
        """
        What work on *name* answers; it takes or does not.
        """
        if self.dice.random() < self.takes:
            self.versions[name] += 1
        if self.dice.random() < self.fails:
            return RuntimeError(f"no such file: part of {name}")
        return None if self.reply is None else self.reply.format(name)


def sessions(world: World, policy: Policy) -> Iterator[tuple[str, str, Decision]]:
    """
    (kind, object, decision) of each call of one session in *world*, which goes on whatever has ended it.
    """
    dice, now = world.dice, 1_800_000_000.0
    turns, pauses = dice.random() < 0.7, dice.choice(((0.1,), (0.1, 1.0, 5.0), (1.0, 70.0)))
    running: list[tuple[Decision, str]] = []
    plan: list[tuple[str, str]] = []
    session = policy.session(f"world-{world.seed}", clock=lambda: now)
    for _ in range(STEPS):
        now += dice.choice(pauses)
        if turns and dice.random() < 0.8:
            session.begin_turn()
        if not plan:
            plan = _plan(dice, sorted(world.versions))
        kind, name = plan.pop(0)
        tool, arguments = world.look(name) if kind == "look" else world.work(name)
        decision = session.decide(tool, arguments)
        if session.exhausted:
            # The user says: go on.
            session.extend(max_calls=1_000)
            decision = session.decide(tool, arguments)
        yield kind, name, decision
        if decision.allowed and kind == "work" and dice.random() < 0.15:
            running.append((decision, name))
        elif decision.allowed:
            session.complete(decision, world.seen(name) if kind == "look" else world.changed(name))
        if running and dice.random() < 0.3:
            late, name = running.pop()
            session.complete(late, world.changed(name))


def _plan(dice: random.Random, objects: list[str]) -> list[tuple[str, str]]:
    one, other = dice.choice(objects), dice.choice(objects)
    look, work, elsewhere = ("look", one), ("work", one), ("look", other)
    plans = (
        [look, look, work, look],
        [look] * dice.randint(1, 5),
        [look, work] * dice.randint(2, 5),
        [look, elsewhere, work, look, elsewhere],
        [work, ("work", other), look],
        [look, ("work", other), elsewhere] * dice.randint(1, 4),
        [work] * dice.randint(1, 4),
    )
    return list(dice.choice(plans))


@dataclass
class Harm:
    """
    What was refused in some worlds.
    """

    looks: int = 0
    refused: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """Of looks that were refused though their object had changed, with the seeds of their worlds."""


def harm(seeds: range, name: str = "default") -> Harm:
    """
    What the policy *name* refuses in the worlds of *seeds*.
    """
    found = Harm()
    plain = Policy.load(name)
    for seed in seeds:
        world = World(seed)
        tools = [Tool(name=world.names[0], read_only=True), Tool(name=world.names[1])]
        policy = Policy.load(name, tools=tools) if world.declared and not world.shell else plain
        for kind, of, decision in sessions(world, policy):
            if kind != "look":
                continue
            found.looks += 1
            found.refused += not decision.allowed
            if not decision.allowed and world.shown.get(of, world.versions[of]) != world.versions[of]:
                found.codes[f"{decision.code} in {seed}"] += 1
    return found
