"""
Random worlds in which looks and works meet: how often is a look refused though its object has changed since?

A world is a handful of objects with versions. A look shows the version of one object, a work may change it. Their tools have
neutral or ordinary names, or are one shell that does both. Works take at once, late, in part, now and then, or not at all.
"""

import random

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from guardrails import Policy, Tool
from guardrails.core.decision import Decision


PAIRS: Final = """alpha beta|thing_1 thing_2|view act|read_file edit_file|list_items create_item|get_cart add_to_cart|search search_replace
fetch_page fetch_or_create_page|find_user find_and_update_user|get_ticket get_next_ticket|lookup lookup_then_insert
srv__get_row srv__upsert_row|getRow putRow|run_tests apply_patch"""
NAMES: Final = tuple(pair.split() for pair in PAIRS.replace("\n", "|").split("|"))
"""(look, work)"""
REPLIES: Final = ("ok", "", "done: {}", "updated", None)
STEPS: Final = 48


class World:
    """
    Objects by name, and what each look showed the last time: the versions that differ since are what a refusal hides.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        chance, choice = self.dice.random, self.dice.choice
        self.versions = {f"o{n}": self.dice.randrange(2) for n in range(self.dice.randint(1, 4))}
        self.shown: dict[str, int] = {}
        self.shell, self.names, self.declared = chance() < 0.25, choice(NAMES), chance() < 0.3
        self.takes, self.fails = choice((1.0, 1.0, 0.7, 0.3, 0.1)), choice((0.0, 0.0, 0.2))
        self.reply: str | None = choice(REPLIES)

    def call(self, kind: str, name: str) -> tuple[str, dict[str, Any]]:
        """
        A look at the object *name*, or a call that may change it; often the same one.
        """
        how = {} if kind == "look" else {"how": self.dice.choice("aab")}
        if self.shell:
            return "exec_shell", {"command": " ".join(("show" if kind == "look" else "change", name, *how.values()))}
        return self.names[kind == "work"], {"id": name, **how}

    def end(self, kind: str, name: str) -> Any:
        """
        What a look shows now, or what work answers, which takes or does not; an exception if there is no such object, or it fails.
        """
        if kind == "look":
            version = self.shown[name] = self.versions[name]
            return f"{name} v{version}" if version else LookupError(f"{name} not found")
        self.versions[name] += self.dice.random() < self.takes
        if self.dice.random() < self.fails:
            return RuntimeError(f"no such file: part of {name}")
        return None if self.reply is None else self.reply.format(name)

    def plan(self) -> list[tuple[str, str]]:
        """
        What the agent does next: a few looks and works, each with its object.
        """
        one, other = (self.dice.choice(sorted(self.versions)) for _ in range(2))
        look, work, elsewhere = ("look", one), ("work", one), ("look", other)
        plans = (
            [look, look, work, look],
            [look] * self.dice.randint(1, 5),
            [look, work] * self.dice.randint(2, 5),
            [look, elsewhere, work, look, elsewhere],
            [work, ("work", other), look],
            [look, ("work", other), elsewhere] * self.dice.randint(1, 4),
            [work] * self.dice.randint(1, 4),
        )
        return list(self.dice.choice(plans))

    def live(self, policy: Policy, name: str) -> Iterator[tuple[str, str, Decision]]:
        """
        (kind, object, decision) of each call of one session, which goes on whatever has ended it.
        """
        dice, now = self.dice, 1_800_000_000.0
        turns, pauses = dice.random() < 0.7, dice.choice(((0.1,), (0.1, 1.0, 5.0), (1.0, 70.0)))
        running: list[tuple[Decision, str]] = []
        plan: list[tuple[str, str]] = []
        session = policy.session(name, clock=lambda: now)
        for _ in range(STEPS):
            now += dice.choice(pauses)
            if turns and dice.random() < 0.8:
                session.begin_turn()
            plan = plan or self.plan()
            kind, of = plan.pop(0)
            call = self.call(kind, of)
            decision = session.decide(*call)
            if session.exhausted:
                # The user says: go on.
                session.extend(max_calls=1_000)
                decision = session.decide(*call)
            yield kind, of, decision
            if decision.allowed and kind == "work" and dice.random() < 0.15:
                running.append((decision, of))
            elif decision.allowed:
                session.complete(decision, self.end(kind, of))
            if running and dice.random() < 0.3:
                late, of = running.pop()
                session.complete(late, self.end("work", of))


def harm(seeds: range, name: str = "default") -> Counter[str]:
    """
    How many looks there are in the worlds of *seeds*, how many the policy *name* refuses, and, as `CODE in SEED`, those whose object had
    changed.
    """
    found, plain = Counter[str](), Policy.load(name)
    for seed in seeds:
        world = World(seed)
        tools = [Tool(name=world.names[0], read_only=True), Tool(name=world.names[1])]
        policy = Policy.load(name, tools=tools) if world.declared and not world.shell else plain
        for kind, of, decision in world.live(policy, f"world-{seed}"):
            if kind == "look":
                found += Counter(looks=1, refused=not decision.allowed)
                if not decision.allowed and world.shown.get(of, world.versions[of]) != world.versions[of]:
                    found[f"{decision.code} in {seed}"] += 1
    return found
