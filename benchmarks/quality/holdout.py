"""
What the suggestions of `guardrails report --suggest` are worth: learned from some of the sessions, judged on the others.

    python -m benchmarks.quality.holdout [FOLDER] [--policy NAME]... [--folds N]

FOLDER holds recorded data sets, `../shared/data` where none is named. The sessions of each source fall into N parts (2) by a
hash of their name; each part is judged by the base policy and by what the other parts suggest beyond it. So every call is
judged once, by settings that never saw its session.
"""

import gzip
import tempfile

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

import orjson
import typer

from typer.testing import CliRunner

from guardrails import Policy
from guardrails.cli import app
from guardrails.offline.judge.files.inputs import inputs
from guardrails.offline.judge.files.run import Work, judge_files
from guardrails.offline.judge.result import Tally, add


DATA: Final = Path(__file__).parents[3] / "shared" / "data"
LEFT_OUT: Final = "errors_and_retries"
"""Derived from the others."""


@dataclass
class Line:
    """
    One source under one policy, with and without what was suggested.
    """

    source: str
    settings: list[str]
    before: Tally
    after: Tally


def parts_of(path: Path, folds: int) -> list[bytes]:
    """
    The calls of a data set, by session.
    """
    lines: list[list[bytes]] = [[] for _ in range(folds)]
    with gzip.open(path) as file:
        for line in file:
            session = orjson.loads(line)["session_id"]
            lines[int.from_bytes(sha256(session.encode()).digest()[:4]) % folds].append(line)
    return [b"".join(part) for part in lines]


def judged(source: Path, policy: str, folder: Path, folds: int) -> Line:
    """
    Each part of *source*, judged by *policy* and by what the other parts suggest.
    """
    name = source.name.partition(".")[0]
    line = Line(name, [], Tally(name), Tally(name))
    parts = parts_of(source, folds)
    seen, held, out = (folder / file for file in ("seen.jsonl", "held.jsonl", "overrides.yaml"))
    for number, part in enumerate(parts):
        held.write_bytes(part)
        seen.write_bytes(b"".join(parts[:number] + parts[number + 1 :]))
        asked = ["report", str(seen), "--policy", policy, "--suggest", "-o", str(out), "--json"]
        said = CliRunner().invoke(app, asked, catch_exceptions=False)
        for one in orjson.loads(said.stdout)["suggestions"]:
            line.settings += [f"{one['tool']}: {key} {value}" for key, value in one["settings"].items()]
        before, after = judge_files(Work([Policy.load(policy), Policy.load(out)], inputs([str(held)])))
        add(line.before, before.total)
        add(line.after, after.total)
    return line


def table(folder: Path, policies: list[str], folds: int) -> Iterator[str]:
    """
    The lines of the table.
    """
    yield f"{'policy':10s}{'source':24s}{'wrong denials':>16s}{'2nd stopped':>20s}{'later stopped':>20s}  suggested"
    with tempfile.TemporaryDirectory() as made:
        for policy in policies:
            for source in sorted(folder.glob("*.jsonl.gz")):
                if not source.name.startswith(LEFT_OUT):
                    yield from told(policy, judged(source, policy, Path(made), folds))


def told(policy: str, line: Line) -> Iterator[str]:
    """
    One row, and what was suggested.
    """
    a, b = line.before, line.after
    wrong = f"{a.wrong.total()} > {b.wrong.total()}"
    second = f"{a.stopped_second} > {b.stopped_second} of {a.pointless_second}"
    later = f"{a.stopped_later} > {b.stopped_later} of {a.pointless_later}"
    times = Counter(line.settings)
    first, *more = [f"{n} x {setting}" for setting, n in sorted(times.items())] or ["nothing"]
    yield f"{policy:10s}{line.source:24s}{wrong:>16s}{second:>20s}{later:>20s}  {first}"
    for setting in more:
        yield f"{'':92s}{setting}"


def main(
    folder: Annotated[Path, typer.Argument()] = DATA,
    policy: Annotated[list[str] | None, typer.Option()] = None,
    folds: Annotated[int, typer.Option(min=2)] = 2,
) -> None:
    """
    Print the table.
    """
    if not folder.is_dir():
        typer.echo(f"no recorded data in {folder}: nothing to judge")
        return
    for line in table(folder, policy or ["default", "strict"], folds):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
