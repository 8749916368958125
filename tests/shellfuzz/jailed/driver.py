"""
What runs in the jail: proves that it is one, tries command by command, and proves it again. Each line it prints is JSON.
"""
# ruff: noqa: T201 (its standard output is a pipe to what started it)

import json
import signal
import time

from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.shellfuzz.jailed import compare, conditions, generate, observed, shrink
from tests.shellfuzz.jailed.subject import RefusedError, Subject, subject


READ_SECONDS: Final = 2.0
"""Of work. No text takes longer to be read: those that are generated are short, or up to the limit of what is read."""
MAX_FOUND: Final = 25
"""Findings that are made small and told; further ones are counted."""
TIMES: Final = 8
"""How often a command that seems to differ is run again: its programs may be faster or slower than each other."""


def main(arguments: list[str]) -> int:
    """
    The exit code: 0 if all was tried, whatever was found; 3 if this is no jail.
    """
    plan = json.loads(Path("/fuzz/plan.json").read_text(encoding="utf-8"))
    plan["outside"] = [int(arguments[1])]
    if not proven(plan, "before"):
        return 3
    if plan["holes"]:
        say("nothing runs in a jail with holes")
        return 0
    Trial(plan).all()
    return 0 if proven(plan, "after") else 3


def proven(plan: dict[str, Any], when: str) -> bool:
    """
    Whether this is a jail; says what shows that it is not.
    """
    broken = conditions.broken(plan)
    say(
        "conditions",
        when=when,
        proven=len(conditions.NAMES) - len({line.split(":")[0] for line in broken}),
        broken=broken,
    )
    return not broken


def say(what: str, **more: Any) -> None:
    print(json.dumps({"say": what, **more}), flush=True)


class Trial:
    """
    The commands of a plan, held against bash and dash one after another.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.subject: Subject = subject(plan["subject"])
        self.commands = generate.Commands(plan["seed"], plan["pieces"], plan["corpus"])
        self.watched = observed.Watched()
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.documented: Counter[str] = Counter()
        self.found = 0

    def all(self) -> None:
        """
        Try every command, and tell every few seconds how far that is.
        """
        told = time.monotonic()
        texts = self.plan["texts"]
        numbers = range(self.plan["first"], len(texts) if texts else self.plan["count"], self.plan["step"])
        for number in numbers:
            kind, text = ("given", texts[number]) if texts else self.commands.command(number)
            self.one(number, kind, text)
            if time.monotonic() - told > 2:
                told = time.monotonic()
                self.tell("progress")
        self.tell("summary")

    def tell(self, what: str) -> None:
        counts = {name: dict(getattr(self, name)) for name in ("counts", "refused", "documented")}
        say(what, found=self.found, **counts)

    def one(self, number: int, kind: str, text: str) -> None:
        self.counts["commands"] += 1
        self.counts[f"commands, {kind}"] += 1
        wrong = self.wrong(text, counted=True)
        if wrong is None:
            return
        self.found += 1
        if self.found > MAX_FOUND:
            return
        sort = wrong[0]
        tries = 1 if sort in ("slow", "hangs") else 300
        small = shrink.shrunk(text, lambda shorter: (self.wrong(shorter) or ("",))[0] == sort, tries=tries)
        why = (self.wrong(small) or wrong)[1]
        say(
            "found",
            number=number,
            kind=kind,
            sort=sort,
            why=why,
            small=ascii(small),
            text=ascii(text),
            characters=len(text),
        )

    def wrong(self, text: str, *, counted: bool = False) -> tuple[str, str] | None:
        """
        The sort of what is wrong with what becomes of *text*, and what shows it. Returns None if nothing is.
        """
        counts = self.counts if counted else Counter[str]()
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, READ_SECONDS)
        try:
            tree = self.subject.read(text)
        except RefusedError as error:
            counts["refused"] += 1
            if counted:
                self.refused[str(error)] += 1
            return None
        except observed.LateError:
            return "slow", f"it was not read within {READ_SECONDS:g} s"
        except BaseException as error:
            return "raised", f"reading it raised {type(error).__name__}: {error!s:.300}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            counts["slowest read, ms"] = max(counts["slowest read, ms"], round(1000 * (time.process_time() - begun)))
        counts["accepted"] += 1
        try:
            if b"\0" in text.encode("utf-8", "surrogateescape"):
                return "accepted", "it holds a character that no shell can be given"
        except UnicodeEncodeError:
            return "accepted", "it holds half a character"
        return self.run(text, tree, counts, self.documented if counted else Counter())

    def run(self, text: str, tree: Any, counts: Counter[str], documented: Counter[str]) -> tuple[str, str] | None:
        """
        The same of *text*, which was read as *tree*.
        """
        ours = self.watched.by(lambda: self.subject.run(tree))
        out = compare.escaped(text, ours)
        if out is not None:
            return "left", out
        if ours.code == -1:
            return "hangs", f"it did not end within {observed.SECONDS:g} s"
        if any(line.startswith(b"raised ") for line in ours.errors):
            return "raised", f"running it: {b' '.join(ours.errors)!r:.300}"
        counts["programs started"] += len(ours.started)
        told = self.subject.told(tree)
        counts["judged to run" if told is not None else "refused by the judge"] += 1
        not_judged = None if told is None else compare.unjudged(told, ours)
        if not_judged is not None:
            return "unjudged", not_judged
        if compare.held_back(ours):
            counts["held back when it ran"] += 1
            return None
        for shell in ("bash", "dash"):
            skipped = compare.not_asked(text, shell, takes_dots=self.watched.takes_dots[shell])
            if skipped is not None:
                documented[skipped] += 1
                continue
            counts[f"the same in {shell}"] += 1
            said = self.differs(text, tree, ours, shell, documented)
            if said is not None:
                counts[f"the same in {shell}"] -= 1
                return f"differs from {shell}", said
        return None

    def differs(
        self, text: str, tree: Any, ours: observed.Observed, shell: str, documented: Counter[str]
    ) -> str | None:
        """
        What differs from *shell* each time that both are run.
        """
        said = None
        for _ in range(TIMES):
            said = compare.difference(text, shell, ours, self.watched.by_shell(shell, text), documented)
            if said is None:
                return None
            ours = self.watched.by(lambda: self.subject.run(tree))
        return said
