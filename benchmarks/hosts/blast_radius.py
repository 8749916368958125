"""
How far a model gets that calls without end, in each host, without and with the guards; and what they cost honest work.

    python -m benchmarks.hosts.blast_radius [NAME...] [--json FILE] [--write]

Each host runs in its own environment, as `python3 dev.py hosts` makes it in .hosts; one that is not there is skipped. It needs
nothing but Python: all of the hosts in about six minutes on two cores. `--calls` and `--seconds` cut a bare host short, whose
figure then is "over N". `--write` puts tables and chart into docs/hosts.md.

Exit code 1: a host runs the same call more than three times, does not stop at a cap, refuses honest work, or lacks a final answer
that it owes; or one that is here failed. 2: no host is here.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tomllib

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from html import escape
from pathlib import Path
from typing import Any, Final


ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs/hosts.md"
CHART: Final = PAGE.with_name("blast-radius.svg")
BEGIN: Final = "<!-- python -m benchmarks.hosts.blast_radius --write -->\n"
END: Final = "<!-- end of the blast radius -->\n"
TIER_1: Final = ("langchain", "openai_agents", "pydantic_ai", "mcp", "fastmcp", "claude_agent_sdk")
"""They stop a stuck model, whatever their drivers say that they cannot do."""
SAME, CAP, HONEST = 3, 20, 20
NOT_INSTALLED: Final = 3
"""The exit code of `benchmarks.hosts.one` for a host that is not there."""


WIDTH, ROW, LEFT, RIGHT, TOP = 760, 30, 190, 520, 64
MOST: Final = 10_000
STYLE: Final = (
    "text{font:12px sans-serif;fill:#1f2328}.dim{fill:#59636e}.back{fill:#ffffff}.line{stroke:#d1d9e0}"
    ".bare{fill:#d55e00}.ours{fill:#0072b2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.back{fill:#0d1117}.line{stroke:#3d444d}"
    ".bare{fill:#f0883e}.ours{fill:#56b4e9}}"
)
"""The colours of Okabe and Ito for wrong and right, lighter where the page is dark; the words say it too."""
Told = Mapping[str, Any]
"""What `benchmarks.hosts.one` says of a host."""


def tables(told: Sequence[Told]) -> str:
    """
    A stuck model; a model without end, and honest work.
    """
    kinds = ("bare", "guarded")
    stuck, work = [], []
    for each in told:
        counts = [_count(each, "stuck", kind, what) for what in ("executions", "requests", "tokens") for kind in kinds]
        ends, took = (ending(each, "stuck", kind) for kind in kinds), each["stories"]["stuck"]["bare"]["seconds"]
        stuck.append([f"{each['host']} {each['version']}", *counts, *ends, f"{took:.1f} s"])
        distinct, honest = ([_count(each, story, kind, "executions") for kind in kinds] for story in STORIES)
        work.append(
            [each["host"], *distinct, ending(each, "distinct", "guarded"), *honest, *_added(each.get("overhead"))]
        )
    heads = ["host", "calls run", "with us", "requests", "with us", "tokens", "with us", "ends with", "with us", "took"]
    again = ["host", "distinct calls run", "cap of 20", "ends with", "honest calls run", "with us"]
    return f"{table(heads, stuck)}\n{table([*again, 'CPU of a bare call', 'we add', 'share'], work)}"


STORIES: Final = ("distinct", "honest")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """
    A table in Markdown.
    """
    head, *body = (f"| {' | '.join(row)} |\n" for row in [heads, *rows])
    return f"{head}|{'---|' * len(heads)}\n{''.join(body)}"


def ending(told: Told, story: str, kind: str) -> str:
    """
    How the run ended, in words.
    """
    names = {"over": "nothing: it goes on", "answer": "an answer", "digest": "the digest", "silence": "no answer"}
    said = told["stories"][story][kind]["ending"]
    return names.get(said, f"`{said}`")


def svg(told: Sequence[Told]) -> str:
    """
    Of each host the calls that a stuck model runs, without and with the guards, on a logarithmic scale.
    """
    height = TOP + ROW * len(told) + 34
    bottom = TOP + ROW * len(told)
    title = "Calls that a stuck model runs, without and with guards"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}"/>',
        f'<text x="16" y="24" font-weight="bold">{title} (policy default)</text>',
        '<circle class="ours" cx="22" cy="42" r="5"/><text x="32" y="46">with us</text>',
        '<circle class="bare" cx="98" cy="42" r="5"/><text x="108" y="46">the bare host, and how it ends</text>',
    ]
    for power in range(int(math.log10(MOST)) + 1):
        x = _at(10**power)
        parts.append(f'<path class="line" d="M{x},{TOP - 8}V{bottom}"/>')
        parts.append(f'<text class="dim" x="{x}" y="{bottom + 18}" text-anchor="middle">{10**power:,}</text>')
    for n, each in enumerate(told):
        y = TOP + ROW * n + ROW // 2
        bare, ours = (each["stories"]["stuck"][kind]["executions"] for kind in ("bare", "guarded"))
        start, end = _at(ours), _at(bare)
        said = f"{_count(each, 'stuck', 'bare', 'executions')}, {ending(each, 'stuck', 'bare').replace('`', '')}"
        parts += [
            f'<text x="16" y="{y + 4}">{escape(each["host"])}</text>',
            f'<path class="line" d="M{start},{y}H{end}" stroke-width="2"/>',
            f'<circle class="bare" cx="{end}" cy="{y}" r="6"/>',
            f'<circle class="ours" cx="{start}" cy="{y}" r="6"/>',
            f'<text x="{start - 12}" y="{y + 4}" text-anchor="end">{ours}</text>',
            f'<text x="{max(start, end) + 12}" y="{y + 4}">{escape(said)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _at(calls: int) -> float:
    """
    None at all stands left of one.
    """
    return round(LEFT + 26 + (RIGHT - LEFT - 26) * math.log10(max(calls, 0.8)) / math.log10(MOST), 1)


def _count(told: Told, story: str, kind: str, what: str) -> str:
    run = told["stories"][story][kind]
    number, over = run[what], "over " if run["ending"] == "over" and run[what] else ""
    if what == "executions" and run["not_run"]:
        # What ran is all that will: the others were refused.
        over = ""
    if what == "tokens" and number >= 10_000:
        size, unit = (1e9, "G") if number >= 1e9 else (1e6, "M") if number >= 1e6 else (1e3, "k")
        return f"{over}{number / size:.{1 if number < 10 * size else 0}f} {unit}"
    # A model that is cut short has asked once more, to be told so.
    return f"{over}{number - (1 if over and what == 'requests' else 0):,}"


def _added(cost: Told | None) -> list[str]:
    if cost is None:
        return ["", "", ""]
    return [f"{cost['bare_us'] / 1e3:.1f} ms", f"{cost['added_us'] / 1e3:.2f} ms", f"{cost['ratio']:.0%}"]


def hosts() -> list[str]:
    """
    Those that have versions and tests, in order.
    """
    folder = ROOT / "tests/hosts"
    names = tomllib.loads((folder / "versions.toml").read_text(encoding="utf-8"))
    return [name for name in names if (folder / f"test_{name}.py").is_file()]


def broken(told: Mapping[str, Any]) -> list[str]:
    """
    What a host owes and does not hold, as sentences.
    """
    host, owes, stories = told["host"], told["owes"], told["stories"]
    stuck, distinct = stories["stuck"]["guarded"], stories["distinct"]["guarded"]
    said = []
    if (host in TIER_1 or "executions" in owes) and not 1 <= stuck["executions"] <= SAME:
        said.append(f"{host}: the same call ran {stuck['executions']} times")
    if "cap" in owes and distinct["executions"] != CAP:
        said.append(f"{host}: of a cap of {CAP}, {distinct['executions']} calls ran")
    honest = stories["honest"]["guarded"]
    if honest["executions"] != HONEST or honest["not_run"] or honest["ending"] != "answer":
        said.append(
            f"{host}: of {HONEST} honest calls {honest['executions']} ran, and it ended with {honest['ending']}"
        )
    if "answer" in owes:
        for story, run in (("stuck", stuck), ("distinct", distinct)):
            if run["ending"] not in ("answer", "digest"):
                said.append(f"{host}, {story}: no final answer, but {run['ending']}")
    return said


def asked(name: str, what: Sequence[str], environments: Path, patience: float) -> dict[str, Any] | str:
    """
    What `benchmarks.hosts.one` says of the host, or why it says nothing; "" if it is not installed.
    """
    python = environments / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        return ""
    command = [str(python), "-m", "benchmarks.hosts.one", name, *what]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return f"it said nothing for {patience:.0f} s"
    if done.returncode == NOT_INSTALLED:
        return ""
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    told: dict[str, Any] = json.loads(lines[-1])
    return told


def gathered(
    names: Sequence[str], environments: Path, calls: int, seconds: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """
    What the hosts say, and what went wrong. The stories run at once on all cores; what is timed runs alone.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    patience = 60 + 8 * seconds
    found: dict[str, dict[str, Any]] = {}
    wrong = []
    with ThreadPoolExecutor(cores) as pool:
        what = ["stories", str(calls), str(seconds)]
        running = {pool.submit(asked, name, what, environments, patience): name for name in names}
        for done in as_completed(running):
            name, said = running[done], done.result()
            if not isinstance(said, str):
                found[name] = said
            elif said:
                wrong.append(f"{name}: {said}")
            state = "told" if name in found else said or f"skipped, not installed: python3 dev.py hosts {name}"
            print(f"{name}: {state}", file=sys.stderr, flush=True)
    told = [found[name] for name in names if name in found]
    for each in told:
        cost = asked(each["host"], ["overhead"], environments, patience)
        if isinstance(cost, str):
            wrong.append(f"{each['host']}: {cost}")
        else:
            each["overhead"] = cost
            print(f"{each['host']}: {cost['ratio']:.0%} a call", file=sys.stderr, flush=True)
    return told, wrong


def page(text: str, shown: str, begin: str = BEGIN, end: str = END) -> str:
    """
    The page *text* with the tables *shown* in place of those that it has between *begin* and *end*.
    """
    before, _, rest = text.partition(begin)
    return f"{before}{begin}{shown}{end}{rest.partition(end)[2]}"


def main(*arguments: str) -> int:
    """
    The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts.blast_radius", description=(__doc__ or "").strip().partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="hosts (default: all)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--write", action="store_true", help="put tables and chart into docs/hosts.md")
    parser.add_argument("--calls", type=int, default=5_000, help="calls that a bare host makes at most (%(default)s)")
    parser.add_argument("--seconds", type=float, default=300, help="seconds that it takes at most (%(default)s)")
    given = parser.parse_args(arguments)
    names = [name.replace("-", "_") for name in given.names] or hosts()
    if unknown := [name for name in names if name not in hosts()]:
        parser.error(f"there is no host `{unknown[0]}`; there are {', '.join(hosts())}")
    told, wrong = gathered(names, ROOT / ".hosts", given.calls, given.seconds)
    if not told and not wrong:
        print("no host is installed: python3 dev.py hosts", file=sys.stderr)
        return 2
    shown = tables(told)
    print(shown, end="")
    if given.json:
        given.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    if given.write:
        CHART.write_text(svg(told), encoding="utf-8")
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")
    wrong += [line for each in told for line in broken(each)]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
