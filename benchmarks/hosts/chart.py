"""
What the hosts came to, as tables in Markdown and as an SVG.
"""

import math

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final


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
    stuck = [
        [
            f"{each['host']} {each['version']}",
            *(_count(each, "stuck", kind, "executions") for kind in ("bare", "guarded")),
            *(_count(each, "stuck", kind, "requests") for kind in ("bare", "guarded")),
            *(_count(each, "stuck", kind, "tokens") for kind in ("bare", "guarded")),
            *(ending(each, "stuck", kind) for kind in ("bare", "guarded")),
            f"{each['stories']['stuck']['bare']['seconds']:.1f} s",
        ]
        for each in told
    ]
    heads = ["host", "calls run", "with us", "requests", "with us", "tokens", "with us", "ends with", "with us", "took"]
    work = [
        [
            each["host"],
            *(_count(each, "distinct", kind, "executions") for kind in ("bare", "guarded")),
            ending(each, "distinct", "guarded"),
            *(_count(each, "honest", kind, "executions") for kind in ("bare", "guarded")),
            *_added(each.get("overhead")),
        ]
        for each in told
    ]
    again = ["host", "distinct calls run", "cap of 20", "ends with", "honest calls run", "with us"]
    return f"{_table(heads, stuck)}\n\n{_table([*again, 'CPU of a bare call', 'we add', 'share'], work)}\n"


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


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
