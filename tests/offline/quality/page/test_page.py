"""
The page of the report: whole, offline, harmless whatever a record says, and with the figures by which tools are redesigned.
"""

import re

from collections.abc import Callable
from pathlib import Path

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.offline.pages.script import DIGEST, SCRIPT
from guardrails.offline.quality.counting import Quality
from guardrails.offline.quality.page.page import page
from guardrails.offline.quality.run import Found
from guardrails.offline.quality.suggestions.suggest import Suggestion
from guardrails.offline.quality.tally import Tally
from guardrails.offline.readers import RecordedCall
from tests.pages import EVIL
from tests.pages import Page as Parsed


Calls = Callable[..., list[RecordedCall]]
Counted = Callable[..., Quality]
Browser = Callable[..., str]

TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "header",
        "main",
        "nav",
        "section",
        "script",
        "h1",
        "h2",
    ),
    *(
        "h3",
        "p",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "a",
        "b",
        "i",
        "bdi",
        "small",
        "span",
        "div",
        "code",
        "svg",
        "rect",
    ),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "input", "label", "output", "button", "noscript"),
}
MAX_SIZE = 2_000_000


class Page(Parsed):
    """
    The page of a report.
    """

    def cells(self) -> list[list[str]]:
        """
        The rows of the table of tools.
        """
        rows = re.findall(r"<tr>(<th scope=\"row\">.*?)</tr>", self.rawdata_of(), re.DOTALL)
        return [
            [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows
        ]

    def feed(self, data: str) -> None:
        self._all = data
        super().feed(data)

    def rawdata_of(self) -> str:
        return self._all


def found_of(quality: Quality, **more: object) -> Found:
    return Found(quality, "default", **more)  # type: ignore[arg-type]


SUGGESTED = [Suggestion("search", {"duplicates": {"rule": "always", "window": 1}}, {"duplicates": "50 of 50 repeats"})]


@pytest.fixture
def found(calls: Calls, counted: Counted) -> Found:
    """
    A search that is repeated for nothing, a tool that is called wrongly, one that times out, one that does well.
    """
    made = calls(*["search x=same"] * 40, duration_ms=2_000, tool_cost_usd=0.01)
    made += calls(*["book a!validation", "book b=ok"] * 5, session="b", duration_ms=90)
    made += calls(*["rates!timeout", "rates!timeout", "rates=1"] * 3, session="r", duration_ms=45_000, cost_usd=0.5)
    made += calls(*(f'good {n}={{"is_complete": true}}' for n in range(30)), session="g", duration_ms=700_000)
    return found_of(counted(made), notices=["a.jsonl: 3 calls have no result"], broken_lines=2)


def test_the_page_is_whole_and_asks_nothing_of_the_network(found: Found) -> None:
    seen = Page(page(found, SUGGESTED))
    assert {tag for tag, _ in seen.elements} <= TAGS
    for _, attrs in seen.elements:
        assert not [name for name in attrs if name.startswith("on") or name in {"src", "srcset", "action", "data"}]
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
    assert "url(" not in seen.raw["style"]
    assert "@import" not in seen.raw["style"]
    anchors = {attrs["id"] for _, attrs in seen.elements if "id" in attrs}
    assert {(attrs["href"] or "").removeprefix("#") for tag, attrs in seen.elements if tag == "a"} == anchors
    (policy,) = (attrs["content"] for _, attrs in seen.elements if attrs.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src '{DIGEST}';" in (policy or "")
    assert seen.raw["script"] == SCRIPT


def test_a13_the_tools_to_redesign_first_stand_first_with_their_reasons(found: Found) -> None:
    text = Page(page(found, SUGGESTED)).text
    for figure in (
        "89 recorded calls of 4 sessions, 4 tools",
        "Wasted60.7 %54 calls",
        "Repeated for nothing56.2 %50 calls in 6 loops",
        "6 loops of 50 idle calls; 214 s, 35.6 s a loop",
        "Cost$4.90$4.50 of model responses, $0.4000 of tools",
        "1. search39 of 40 calls wasted (97.5 %)",
        "39 repeated a result: say in the result that it is complete and the same call brings the same; 40 of 40 results do not",
        "3. rates6 of 9 calls wasted (66.7 %)",
        "6 failed with timeout: answer at once with an id to ask for, or do less in a call",
        "2. book9 of 10 calls wasted (90.0 %)",
        "4 repeated an error: say in it that the same call fails again, and what to do instead",
    ):
        assert figure in text, figure
    assert "4. good" not in text, "it wastes nothing"


def test_costs_that_nobody_recorded_are_not_told(counted: Counted) -> None:
    call = RecordedCall("a", "s", 0, "look", {}, result="x", is_error=False)
    assert "Cost" not in Page(page(found_of(counted([call])))).text


def test_a13_the_table_has_every_figure_of_every_tool(found: Found) -> None:
    rows = {row[0]: row[1:] for row in Page(page(found)).drawn()}
    assert list(rows) == ["search", "book", "rates", "good"]
    none = "\N{EN DASH}"
    assert rows["search"] == [
        *("40", "39", "97.5 %", "0 %", none, none, none, "97.5 %", "97.5 %", "1", none, "78 s", "100 %"),
        *("2.02 s", "2.02 s", "$0.4000", "0", "0", none),
    ]
    assert rows["book"] == [
        *("10", "9", "90.0 %", "50.0 %", "80.0 %", "0 of 4", "100 %", "80.0 %", "80.0 %", "2", none, "360 ms", "100 %"),
        *("89 ms", "89 ms", none, "0", "5", "5 validation"),
    ]
    assert rows["good"][12:15] == ["0 %", "12 min", "12 min"]


def test_settings_are_shown_with_their_evidence(found: Found) -> None:
    text = Page(page(found, SUGGESTED)).text
    assert "search: duplicates: {rule: always, window: 1}50 of 50 repeats" in text
    assert "Nothing: there are too few calls" in Page(page(found)).text


def test_what_was_met_is_told() -> None:
    met = found_of(Quality(lambda _: None), notices=["a.jsonl: 3 calls have no result"], broken_lines=2)  # type: ignore[arg-type, return-value]
    text = Page(page(met)).text
    for said in (
        "2 lines could not be read.",
        "a.jsonl: 3 calls have no result",
        "No call was wasted.",
        "No call failed.",
        "The records hold no durations.",
    ):
        assert said in text
    assert "nan" not in text.lower()


def named(name: str) -> Found:
    """
    Figures that say *name* wherever a record may.
    """
    quality = Quality(lambda _: None, sources={name}, calls=3, sessions=1)  # type: ignore[arg-type, return-value]
    tally = Tally(name, calls=3, wasted=2, pointless_second=2, results=3, unsignalled=3)
    tally.errors[name] += 1
    tally.durations.add(5)
    quality.tallies[name] = tally
    return Found(quality, name, notices=[name])


@given(st.one_of(st.just(EVIL), st.text(max_size=200)))
@settings(max_examples=40)
def test_text_of_records_stays_text(name: str) -> None:
    text = page(named(name), [Suggestion(name, {"polling": True}, {"polling": name})])
    seen = Page(text)
    assert {tag for tag, _ in seen.elements} <= TAGS
    assert seen.raw["script"] == SCRIPT
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    text.encode()


def test_countless_tools_with_endless_names_make_a_page_that_opens() -> None:
    quality = Quality(lambda _: None)  # type: ignore[arg-type, return-value]
    for n in range(3_000):
        name = f"{n}{chr(0x202E) * 5_000}"
        tally = Tally(name, calls=n + 9, wasted=n, pointless_second=n)
        tally.errors["not_found"] += n
        tally.durations.add(n)
        quality.tallies[name] = tally
    made = [Suggestion(name, {"polling": True}, {"polling": "so"}) for name in quality.tallies]
    text = page(Found(quality, "p" * 9_000, notices=["n" * 9_000] * 900), made)
    assert len(text.encode()) < MAX_SIZE
    assert len(Page(text).drawn()) == 3_000
    assert "and 2,500 settings more" in text


def test_a_browser_shows_charts_and_figures_without_a_network(found: Found, browser: Browser, tmp_path: Path) -> None:
    seen = Page(browser(page(found, SUGGESTED), tmp_path))
    for figure in (
        "1. search39 of 40 calls wasted (97.5 %)",
        "60.7 %",
        "p50 2.02 s, p99 2.02 s of 40 calls",
        "rule: always",
    ):
        assert figure in seen.text
    assert len([tag for tag, _ in seen.elements if tag == "svg"]) == 4, "a duration for each tool"
    bars = [attrs["style"] for tag, attrs in seen.elements if tag == "i" and "width" in (attrs.get("style") or "")]
    assert "width:100%" in [style.replace(" ", "").rstrip(";") for style in bars if style]
    assert "button" in {tag for tag, _ in seen.elements}, "the script made buttons of the headings"


def asking(text: str, script: str) -> str:
    """
    The page with another script at its end, which its own policy would not let run.
    """
    open_page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    return open_page.replace("</body>", f"<script>{script}</script></body>")


@pytest.mark.slow
@pytest.mark.parametrize("width", [500, 1280])
def test_nothing_but_a_table_is_wider_than_the_window(
    found: Found, browser: Browser, tmp_path: Path, width: int
) -> None:
    # Headless windows are at least 500 pixels wide.
    told = asking(
        page(found, SUGGESTED),
        "document.title = document.documentElement.scrollWidth - document.documentElement.clientWidth",
    )
    assert re.search(r"<title>(-?\d+)</title>", browser(told, tmp_path, width)).group(1) == "0"  # type: ignore[union-attr]


def test_durations_are_sorted_by_their_length_and_not_by_their_digits(
    found: Found, browser: Browser, tmp_path: Path
) -> None:
    click = "[...document.querySelectorAll('thead button')].find(b => b.textContent === 'p99').click()"
    rows = Page(browser(asking(page(found), click), tmp_path)).cells()
    assert [(row[0], row[15]) for row in rows] == [
        ("good", "12 min"),
        ("rates", "44.8 s"),
        ("search", "2.02 s"),
        ("book", "89 ms"),
    ]


HOSTILE = [
    "<script>alert(1)</script>",
    "</table><b>x",
    "n" * 5_000,
    "\u202eevil",
    "\u05d0\u05d1\u05d2",
    "",
    "a\nb",
    "&lt;",
    "\u2028",
]


def of_names(names: list[str]) -> Found:
    quality = Quality(lambda _: None)  # type: ignore[arg-type, return-value]
    for n, name in enumerate(names):
        quality.tallies[name] = Tally(name, calls=n + 9, wasted=n, pointless_second=n, loops=n)
    return found_of(quality)


def test_names_that_would_be_html_are_text_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    seen = Page(browser(page(of_names(HOSTILE)), tmp_path))
    assert len([tag for tag, _ in seen.elements if tag == "script"]) == 2, "the data and the page's own"
    assert "<script>alert(1)</script>" in seen.text
    assert "\\u202eevil" in seen.text


def test_of_thousands_of_tools_a_browser_draws_some_and_searches_all(browser: Browser, tmp_path: Path) -> None:
    text = page(of_names([f"tool_{n}" for n in range(9_000)]))
    assert len(text.encode()) < MAX_SIZE
    seen = Page(browser(text, tmp_path))
    assert "Show all 9,000 rows" in seen.text
    assert len([tag for tag, _ in seen.elements if tag == "tr"]) == 501
    typed = "const i = document.querySelector('input[type=search]'); i.value = 'tool_17'; i.dispatchEvent(new Event('input'))"
    found = browser(asking(text, typed), tmp_path)
    assert "tool_17</bdi>" in found
    assert "111 of 9000" in found
