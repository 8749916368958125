"""
The page that `--html` writes: one file that asks nobody, holds the JSON of a command, and draws it.
"""

import base64
import hashlib
import json
import re
import stat

from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.cli.files import PAGE, page, write_page
from tests.pages import EVIL, document, in_browser
from tests.tables import table


TALLY: Final[dict[str, Any]] = {
    "source": EVIL,
    "calls": 12,
    "sessions": 2,
    "refused": 8,
    "wrong_per_1000": 166.7,
    **{name: {} for name in ("nudged", "observed", "repeats", "failed", "unknown", "wrong_observed")},
    "denied": {"duplicates.window": 6, "budget.max_calls": 2},
    "wrong": {"duplicates.window": 2},
    **{f"{what}_{which}": 3 for what in ("pointless", "stopped") for which in ("second", "later")},
}
JUDGED: Final[dict[str, Any]] = {
    "policy": EVIL,
    "total": TALLY,
    "sources": [TALLY],
    "tools": [TALLY],
    "not_judged": {"rate": EVIL},
    "notices": [EVIL],
}
TOOL: Final[dict[str, Any]] = {
    "tool": EVIL,
    "calls": 40,
    "wasted": 10,
    "wasted_share": 0.25,
    "errors": {"timeout": 8, EVIL: 4},
    "loop_calls": 2,
    "loops": 1,
    "results": 28,
    "without_completion_signal": 7,
    "cost_usd": 0.5,
    "p50_ms": 20,
    "p99_ms": 4_000,
    "reasons": [EVIL],
}
FAILURE: Final[dict[str, Any]] = {
    "tool": EVIL,
    "error": "timeout",
    "retries": 40.0,
    "successes": 30.0,
    "rate": 0.74,
    "low": 0.6,
    "high": 0.86,
    "wait_ms": 5_000,
    "wait_rate": 0.9,
    "at_wait": [20.0, 18.0],
    "repaired": [0, 0],
    "corrected": [8, 2],
    "sentence": EVIL,
    "curve": [[0, 0.1], [5_000, 0.8], [60_000, 0.85]],
}
SUGGESTED: Final = {"tool": EVIL, "settings": {"stable": True}, "evidence": {"stable": EVIL}}
DATA: Final[list[tuple[Any, Any]]] = [
    (
        "report",
        {
            "policy": EVIL,
            "calls": 40,
            "sessions": 2,
            "tools": [TOOL],
            "suggestions": [SUGGESTED],
            "model_cost_usd": 1.25,
            "formula": "score",
            "notices": [EVIL],
            "read_as": {EVIL: EVIL},
        },
    ),
    ("replay", JUDGED),
    ("replay", {"judgements": [JUDGED, JUDGED]}),
    ("profile", [FAILURE]),
    ("profile", []),
]


def test_no_text_leaves_the_element_that_holds_it() -> None:
    for command, data in DATA:
        text = page(command, data)
        assert document(text) == {"command": command, "data": data}
        head, _, rest = PAGE.read_text().partition("DATA")
        assert text.endswith(rest)
        assert text.count("</script>") == (head + rest).count("</script>") == 2


def test_a_page_is_small_and_may_load_nothing_and_run_its_own_script_only() -> None:
    text = page("profile", [])
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:" in text
    assert set(re.findall(r"https?://[^\"'` ]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|import\(|url\(", text)
    assert len(PAGE.read_text().splitlines()) <= 350


def test_a_page_is_its_owner_s_unless_the_file_was_there(tmp_path: Path) -> None:
    new, old = tmp_path / "new.html", tmp_path / "old.html"
    old.touch()
    old.chmod(0o644)
    for path in (new, old):
        write_page(path, "profile", [])
    assert [stat.S_IMODE(path.stat().st_mode) for path in (new, old)] == [0o600, 0o644]


@pytest.mark.system
@table("width", [1280, 390])
def test_a_browser_draws_every_page_within_its_width_and_takes_no_word_for_markup(width: int, tmp_path: Path) -> None:
    measure = "document.body.dataset.fits = document.documentElement.scrollWidth <= innerWidth"
    for at, (command, data) in enumerate(DATA):
        text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(command, data))
        folder = tmp_path / f"{width}-{at}"
        folder.mkdir()
        drawn = in_browser(text.replace("</body>", f"<script>{measure}</script></body>"), folder, width)
        assert 'data-fits="true"' in drawn
        assert "<h1>" in drawn
        assert "<img" not in drawn
        if data:
            assert "onerror=alert(1)" in drawn.split("</script>", 2)[-1]


@pytest.mark.system
def test_a_bar_is_as_long_as_the_number_on_it_and_a_curve_stands_where_its_numbers_do(tmp_path: Path) -> None:
    drawn = in_browser(page("replay", JUDGED), tmp_path)
    bars = re.findall(r'class="bar" style="--n: ([\d.]+)[^>]*><i></i><b>([\d,]+)</b>', drawn)
    assert [(float(n), int(shown)) for n, shown in bars][:2] == [(1, 6), (pytest.approx(1 / 3), 2)]
    (tmp_path / "curve").mkdir()
    drawn = in_browser(page("profile", [FAILURE]), tmp_path / "curve")
    (path,) = re.findall(r'<path [^>]*d="M([^"]+)"', drawn)
    heights = [118 - float(point.split(",")[1]) for point in path.split("L")]
    assert heights == pytest.approx([108 * p for _, p in FAILURE["curve"]])


def test_the_script_is_written_for_what_the_commands_say() -> None:
    script = PAGE.read_text()
    for command, data in DATA:
        assert f"  {command}(d) {{" in script
        assert json.loads(json.dumps(data)) == data
