"""
Loops caught and honest work left alone, ours and others' in one table: python -m benchmarks.loops.table [FOLDER]

FOLDER holds the recorded data sets (`../shared/data` where none is named; without it that half of the table is left out);
docs/measurements.md says what the figures mean.
"""

import sys
import tempfile

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.judge.shipped_policies import CODING, DATA, WEAK, together
from benchmarks.loops.baselines import GeminiCli, HermesAgent, OpenHands, StepLimit, TwoIdenticalResults
from benchmarks.loops.stories import HONEST, LOOPS, PAUSE, TWINS, Story
from guardrails import Duplicates, Loops, Policy
from guardrails.core.guards.loop_score import LoopScore
from guardrails.offline.learning.facts import Facts
from guardrails.offline.learning.rows import read
from guardrails.offline.learning.train import learn
from guardrails.offline.replay.run import judge_files
from guardrails.offline.replay.tally import Judgement
from guardrails.offline.transcripts.files import Input, inputs
from guardrails.stores.places import write_whole


OFF: Final = Duplicates(window=30, mode="off")
"""Makes sessions remember as many calls as the others look back at."""

HEADS: Final = (
    *("rule", "loops caught", "of them refused", "honest work not refused", "and not nudged"),
    *("wrong denials per 1,000 coding", "later repeats refused, all", "weak", "coding", "second repeats refused"),
    *("wrong share of denials", "wrong nudges per 1,000 coding"),
)


def policies() -> dict[str, Policy]:
    """
    The rules by name.
    """
    others: dict[str, Any] = {
        "two identical results": TwoIdenticalResults(),
        "OpenHands": OpenHands(),
        "gemini-cli": GeminiCli(),
        "hermes-agent": HermesAgent(),
        "100 calls": StepLimit(),
    }
    made = {"same arguments, window of 5": Policy([Duplicates(window=5)])}
    made |= {name: Policy([OFF, guard]) for name, guard in others.items()}
    made["our `duplicates` alone"] = Policy([Duplicates(rule="evidence", window=20)])
    made["our `loops` alone"] = Policy([Loops()])
    for name in ("default", "strict"):
        chain = Policy.load(name).chain
        kept = [guard for guard in chain.guards if guard.name not in LIMITS]
        options: Any = {"tools": chain.tools.values(), "rules": chain.rules, "by_name": chain.by_name}
        made[f"policy `{name}`, no limits"] = Policy(kept, **options)
    return made


LIMITS: Final = ("denials", "budget", "growth", "streak", "rate")
LEARNED: Final = "our `loop_score`"


def learned(files: Sequence[Input], folder: Path) -> tuple[Policy, Judgement]:
    """
    The learned score: of all *files* for the stories, and what a model of all other files does on each. Models go into *folder*.
    """
    facts = {file.path: read([file.path], loops=True).facts for file in files}
    judged = Judgement(LEARNED, [])
    for path in ("", *facts):
        rest = Facts()
        for other, own in facts.items():
            for fact, count in own.items() if other != path else ():
                rest.add(fact, *count)
        model = folder / f"{len(list(folder.iterdir()))}.json"
        write_whole(model, learn(rest, loops=True, force=True).text)
        policy = Policy([LoopScore(model=str(model))], by_name=True)
        if not path:
            of_all = policy
        else:
            judged.rows += judge_files([policy], inputs([path]))[0].rows
    return of_all, judged


def said(policy: Policy, name: str, story: Story) -> tuple[bool, bool]:
    """
    Whether it said anything to an agent that goes through *story* whatever it is told, and whether it refused a call.
    """
    now = [1_800_000_000.0]
    nudged = denied = False
    session = policy.session(name.replace("`", ""), clock=lambda: now[0])
    pause = PAUSE
    for turn in story:
        if isinstance(turn, float | int):
            pause = turn
            continue
        if isinstance(turn, str):
            session.ledger.go_on()
            continue
        session.begin_turn()
        now[0], pause = now[0] + pause, PAUSE
        for tool, arguments, result in turn:
            decision = session.decide(tool, arguments)
            nudged |= bool(decision.nudges)
            denied |= not decision.allowed
            if decision.allowed:
                session.complete(decision, result)
    return nudged or denied, denied


def row(name: str, policy: Policy, judged: Judgement | None) -> list[str]:
    """
    One line of the table.
    """
    caught = [said(policy, f"{name} {at}", story) for at, story in enumerate(LOOPS.values())]
    spared = [said(policy, f"{name} honest {at}", story) for at, story in enumerate(HONEST.values())]
    cells = [
        name,
        f"{sum(any_ for any_, _ in caught)}/{len(caught)}",
        f"{sum(denied for _, denied in caught)}",
        f"{sum(not denied for _, denied in spared)}/{len(spared)}",
        f"{sum(not any_ for any_, _ in spared)}",
    ]
    if judged is None:
        return cells
    coding, weak, total = together(judged, CODING), together(judged, WEAK), judged.total
    nudges = 1_000 * coding.wrong_nudges.total() / coding.calls
    return [
        *cells,
        f"{coding.wrong_per_1000:.2f}",
        *(_share(tally) for tally in (total, weak, coding)),
        f"{total.stopped_second} of {total.pointless_second}",
        f"{100 * total.wrong.total() / total.refused:.1f} %" if total.refused else "none",
        f"{nudges:.2f}",
    ]


def _share(tally: Any) -> str:
    part = 100 * tally.stopped_later / tally.pointless_later if tally.pointless_later else 0
    return f"{tally.stopped_later} of {tally.pointless_later} ({part:.1f} %)"


def main(folder: Path = DATA) -> int:
    """
    Print the table, and what of the stories our default policy misses.
    """
    rules = policies()
    files = inputs(sorted(map(str, folder.glob("*.jsonl*"))))
    judged: list[Judgement | None] = [*judge_files(list(rules.values()), files)] if files else [None] * len(rules)
    rows = [row(name, policy, found) for (name, policy), found in zip(rules.items(), judged, strict=True)]
    if files:
        with tempfile.TemporaryDirectory() as models:
            rows.append(row(LEARNED, *learned(files, Path(models))))
    heads = list(HEADS[: len(rows[0])])
    print("\n".join(f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]))
    ours = rules["policy `default`, no limits"]
    for kind, stories in (("loop", LOOPS), ("honest", HONEST)):
        for name, story in stories.items():
            heard, refused = said(ours, f"{kind} {name}", story)
            if (kind == "loop" and not refused) or (kind == "honest" and heard):
                print(f"{kind}, {'refused' if refused else 'nudged' if heard else 'not told'} by default: {name}")
    spared = [not said(ours, f"twin {at}", story)[1] for at, story in enumerate(TWINS.values())]
    print(f"twins of the rules not refused by default: {sum(spared)} of {len(spared)}")
    if not files:
        print(f"no recorded data sets in `{folder}`: only stories were judged", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
