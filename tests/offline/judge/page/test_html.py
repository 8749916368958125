"""
The page of a judgement: whole, offline, harmless whatever a transcript says, and of a size that opens.
"""

import re

from collections import Counter
from pathlib import Path

import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.offline.judge.counting import WHY
from guardrails.offline.judge.page.html import page
from guardrails.offline.judge.result import MAX_STOPS, Cell, Judgement, Stop, Tally, TimeLine
from guardrails.offline.pages.script import DIGEST, SCRIPT
from tests.pages import EVIL, in_browser
from tests.pages import Page as Parsed


TAGS = {
    *("html", "head", "meta", "title", "link", "style", "body", "header", "main", "footer", "nav", "section", "script"),
    *("h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "a", "b", "i", "bdi", "small", "span", "div", "figure"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "svg", "g", "rect", "details", "summary"),
}
MAX_SIZE = 3_000_000
NOON = 1_770_000_000_000


class Page(Parsed):
    """
    The page of a judgement.
    """

    def classes(self, css: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.elements if css in (attrs.get("class") or "").split()]

    def titles(self) -> list[str]:
        return [title for _, attrs in self.elements if (title := attrs.get("title"))]


def line_of(source: str, session: str, calls: int, stops: list[Stop], run: str = "") -> TimeLine:
    """
    The time line of a session whose stops are among *stops*.
    """
    cells: dict[int, Cell] = {n: (n, "allow", "") for n in range(calls)}
    for stop in stops:
        if (stop.source, stop.session_id, stop.run) == (source, session, run):
            cells[stop.call_index] = (stop.call_index, stop.decision, stop.code)
    return TimeLine(source, session, run, list(cells.values()))


def judgement(policy: str = "default", *, wrong: int = 1) -> Judgement:
    """
    Two sessions of 40 calls: a few repeats stopped, one of them wrongly, and a session that used up its budget.
    """
    tally = Tally(
        "coding",
        sessions=2,
        calls=40,
        denied=Counter({"duplicates.evidence": 4, "budget.max_calls": 1}),
        nudged=Counter({"loops.cycle": 1}),
        after_exhaustion=Counter({"budget.max_calls": 6}),
        denied_without_cap=Counter({"duplicates.evidence": 5, "budget.max_calls": 1}),
        wrong=Counter({"duplicates.evidence": wrong}),
        wrong_without_cap=Counter({"duplicates.evidence": 2}),
        limit_stops=Counter({"budget.max_calls": 1}),
        pointless_second=3,
        pointless_later=4,
        stopped_second=1,
        stopped_later=3,
        saved_calls=11,
        saved_responses=9,
        saved_tokens=12_345,
        tokens=99_999,
        saved_micro_usd=123_456,
        micro_usd=2_000_000,
    )
    stops = [
        Stop("coding", "first", n, "Bash", "deny", "duplicates.evidence", NOON + n * 3_600_000, n != 5 or not wrong)
        for n in (5, 6, 9, 12)
    ]
    stops.append(Stop("coding", "first", 14, "Read", "nudge", "loops.cycle", NOON, pointless=False))
    stops += [
        Stop("coding", "second", n, "Edit", "deny", "budget.max_calls", None, pointless=False) for n in range(12, 19)
    ]
    return Judgement(
        policy,
        [tally],
        {"rate": "the transcripts have no times"},
        stops,
        {"Bash": tally},
        [line_of("coding", "first", 21, stops), line_of("coding", "second", 19, stops)],
        ["a.jsonl: 3 calls have no result"],
        broken_lines=2,
        seconds=0.5,
    )


def watching() -> Judgement:
    """
    A policy in observe mode.
    """
    tally = Tally(
        "coding",
        sessions=1,
        calls=10,
        observed=Counter({"duplicates.evidence": 3, "streak.max_same": 2}),
        wrong_observed=Counter({"duplicates.evidence": 1}),
        pointless_later=4,
        observed_later=2,
    )
    stops = [Stop("coding", "s", n, "Bash", "observe", "duplicates.evidence", None, n != 3) for n in (3, 5, 6)]
    lines = [line_of("coding", "s", 10, stops)]
    return Judgement("observe", [tally], stops=stops, tools={"Bash": tally}, timelines=lines)


def large(name: str, *, calls: int = 5_000) -> Judgement:
    """
    As much of everything as there can be, each name 10 KB long.
    """
    names = [f"{n}{name * (10_000 // len(name))}{n}" for n in range(40)]
    tallies = [Tally(f"{name * 9_000}{n}", 3, 100, Counter({names[n % 40]: 5})) for n in range(600)]
    stops = [
        Stop(names[n % 40], names[n % 39], n // 39, names[n % 38], "deny", names[n % 37], NOON + n * 10**8, n % 2 == 0)
        for n in range(MAX_STOPS)
    ]
    lines = [
        TimeLine(names[n % 39], f"{n}{names[n % 40]}", "", [(i, "deny", names[(i * 7) % 40]) for i in range(calls)])
        for n in range(100)
    ]
    return Judgement(
        names[0],
        tallies,
        dict.fromkeys(names, names[1]),
        stops,
        {f"{tally.source}{n}": tally for n, tally in enumerate(tallies[:200])},
        lines,
        names * 25,
    )


CASES = {
    "one": (judgement(), None),
    "two": (judgement(), judgement("strict", wrong=0)),
    "twice the same": (judgement(), judgement()),
    "watching": (watching(), None),
    "one and watching": (judgement(), watching()),
    "no calls": (Judgement("default"), None),
    "no calls, two": (Judgement("default"), Judgement("strict")),
    "nothing denied": (Judgement("default", [Tally("coding", sessions=3, calls=12)]), None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_page_is_whole_and_asks_nothing_of_the_network(case: str) -> None:
    seen = Page(page(*CASES[case]))
    assert {tag for tag, _ in seen.elements} <= TAGS
    for _, attrs in seen.elements:
        assert not [name for name in attrs if name.startswith("on") or name in {"src", "srcset", "action", "data"}]
        assert (attrs.get("href") or "#").startswith(("#", "data:,"))
    assert "url(" not in seen.raw["style"]
    assert "@import" not in seen.raw["style"]
    anchors = {attrs["id"] for _, attrs in seen.elements if "id" in attrs}
    links = {(attrs["href"] or "").removeprefix("#") for tag, attrs in seen.elements if tag == "a"}
    assert links == anchors


@pytest.mark.parametrize("case", CASES)
def test_the_page_allows_no_script_but_its_own(case: str) -> None:
    seen = Page(page(*CASES[case]))
    (policy,) = (attrs["content"] for _, attrs in seen.elements if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src ")
    assert f"script-src '{DIGEST}';" in policy
    assert [tag for tag, _ in seen.elements].count("script") == 1
    assert seen.raw["script"] == SCRIPT


def test_the_headline_has_the_figures() -> None:
    text = Page(page(judgement())).text
    assert (
        "default would have denied 5 of 40 calls in 2 sessions: 3 pointless repeats, 1 wrongly (25.00 per 1,000 calls)"
        in text
    )
    assert "1 at a limit. 6 further calls came after exhaustion." in text
    for figure in (
        "Calls402 sessions, 1 source",
        "Denied512.5 % of calls; 6 without the denial cap",
        "Wrong denials per 1,000 calls25.001 denial of calls that brought something; 50.00 without the denial cap",
        "Pointless second calls stopped1 of 3too few for a share",
        "Pointless later calls stopped3 of 4too few for a share",
        "Stopped at a limit1",
        "After exhaustion6",
        "Nudged1",
        "Saved at most11 calls12,345 tokens (12.3 %); $0.1235 of $2.00; 9 model responses",
    ):
        assert figure in text


def test_wrong_denials_stand_beside_right_ones() -> None:
    text = Page(page(judgement())).text
    assert "3 right, 1 wrong (25.00 per 1,000), 1 at a limit" in text


def test_why_denials_were_wrong_and_what_was_lost_is_told_by_source_and_call() -> None:
    found = judgement()
    (tally,) = found.tallies
    tally.wrong_why, tally.wrong_worked = Counter(changed=1), Counter(changed=1)
    tally.lost, tally.lost_worked, tally.lost_new = (Counter({"budget.max_calls": n}) for n in (7, 5, 4))
    found.stops[0].why = "changed"
    seen = Page(page(found))
    assert "of calls that brought something: 1 changed; 50.00 without the denial cap" in seen.text
    assert "calls of sessions that were over; 7 with the first of each, of which 5 had worked" in seen.text
    assert "default: why denials were wrongchangedlost after the endsource" in seen.text
    assert "coding111754" in seen.text, "wrong, changed, worked; lost, worked, no repeat"
    assert "duplicates.evidencewrong, changed" in seen.text
    assert WHY["changed"] in seen.titles()
    assert "Changed: the latest identical call had another result." in seen.text


def test_objections_that_are_wrong_are_told_like_denials_and_nothing_wrong_has_no_table() -> None:
    watched = watching()
    assert "why denials were wrong" not in Page(page(watched)).text
    (tally,) = watched.tallies
    tally.wrong_observed_why = Counter(volatile=1)
    seen = Page(page(watched, judgement()))
    assert "observe: why denials were wrong" in seen.text
    assert "coding110" in seen.text
    assert "default: why denials were wrong" not in seen.text


def test_a_session_is_a_row_with_a_cell_a_call() -> None:
    seen = Page(page(judgement()))
    titles = seen.titles()
    assert "call 5: Bash, deny duplicates.evidence, wrong" in titles
    assert "call 6: Bash, deny duplicates.evidence, pointless repeat" in titles
    assert "call 14: Read, nudge loops.cycle" in titles
    assert "calls 15-20: allowed" in titles
    assert len(seen.classes("wrong")) == 1
    assert len(seen.classes("ran")) == 1
    cells = [attrs for tag, attrs in seen.elements if tag == "i" and ("title" in attrs or not attrs)]
    assert len([attrs for attrs in cells if (attrs.get("title") or "call ").startswith("call ")]) == 40


def test_what_a_cell_says_is_also_told_in_words() -> None:
    text = Page(page(judgement())).text
    assert "21 calls, 4 duplicates.evidence, 1 nudge loops.cycle" in text
    assert "calls 12-18: Edit, deny budget.max_calls" in text


def test_a_long_session_shows_runs_of_calls_and_not_every_one() -> None:
    cells: list[Cell] = [(n, "allow", "") if n < 900 else (n, "deny", "budget.max_calls") for n in range(1_000)]
    line = TimeLine("coding", "long", "", cells)
    seen = Page(page(Judgement("default", [Tally("coding", 1, 1_000)], timelines=[line])))
    assert {"calls 0-899: allowed", "calls 900-999: budget.max_calls"} <= set(seen.titles())
    assert not [title for title in seen.titles() if title.startswith("call 9")]


def test_a_line_of_countless_changes_is_cut_and_says_so() -> None:
    cells: list[Cell] = [(n, "deny", "loops.cycle") if n % 2 else (n, "allow", "") for n in range(3_000)]
    line = TimeLine("coding", "busy", "", cells)
    text = Page(page(Judgement("default", [Tally("coding", 1, 3_000)], timelines=[line]))).text
    assert "and 2,000 calls more" in text


def test_sessions_of_one_name_are_told_apart_by_source_and_life() -> None:
    stops = [
        Stop("mine", "same", 1, "Bash", "deny", "loops.cycle", None, pointless=True),
        Stop("theirs", "same", 1, "Read", "deny", "loops.cycle", None, pointless=False),
        Stop("mine", "same", 0, "Edit", "deny", "loops.cycle", None, pointless=True, run="r2"),
    ]
    lines = [
        line_of("mine", "same", 3, stops),
        line_of("theirs", "same", 2, stops),
        line_of("mine", "same", 1, stops, run="r2"),
    ]
    seen = Page(page(Judgement("default", [Tally("mine", 3, 6)], stops=stops, timelines=lines)))
    assert "call 1: Bash, deny loops.cycle, pointless repeat" in seen.titles()
    assert "call 1: Read, deny loops.cycle, wrong" in seen.titles()
    assert "call 0: Edit, deny loops.cycle, pointless repeat" in seen.titles()
    assert "same life r2 of mine" in seen.text
    assert "same of theirs" in seen.text


def test_the_stops_are_listed_with_the_wrong_ones_first() -> None:
    text = Page(page(judgement())).text
    listed = text[text.index("12 of 12 stops, wrong denials first") :]
    rows = re.findall(r"(first|second)(\d+)coding(Bash|Read|Edit)", listed)
    assert rows[0] == ("first", "5", "Bash")
    assert len(rows) == 12
    assert "2026-02-02 07:40:00" in listed


def test_stops_are_drawn_by_time_and_by_position() -> None:
    text = Page(page(judgement())).text
    assert "4 stops with a time, by hour (UTC)" in text
    assert "7 stops without a time" in text
    assert "calls 5-93" in text
    assert "calls 10-198" in text


def test_without_any_times_only_positions_are_drawn() -> None:
    found = judgement()
    for stop in found.stops:
        stop.at_ms = None
    seen = Page(page(found))
    assert "The transcripts have no times." in seen.text
    assert "svg" not in {tag for tag, _ in seen.elements}


def test_a_policy_that_watches_shows_what_it_would_have_denied() -> None:
    seen = Page(page(watching()))
    assert "objected 5 times: 2 pointless repeats, 1 wrongly (100.00 per 1,000 calls), 2 at a limit." in seen.text
    assert "they met 2 of 4 pointless later calls" in seen.text
    assert "2 right, 1 wrong (100.00 per 1,000), 2 at a limit" in seen.text
    assert "call 3: Bash, observe duplicates.evidence, wrong" in seen.titles()
    assert len(seen.classes("ran")) == 3


def test_two_policies_stand_side_by_side_with_their_differences() -> None:
    strict = judgement("strict", wrong=0)
    strict.stops.append(Stop("coding", "first", 3, "Grep", "deny", "loops.same", NOON, pointless=False))
    strict.stops = [stop for stop in strict.stops if stop.call_index != 9]
    strict.stops[-2].code = "budget.max_tokens"
    text = Page(page(judgement(), strict)).text
    assert "Judgement of default and strict" in text
    assert "Wrong denials per 1,000 calls25.00" in text
    assert "\N{MINUS SIGN}25.00" in text
    assert "3 calls decided differently" in text
    assert "allowloops.same110" in text
    assert "duplicates.evidenceallow101" in text
    assert "budget.max_callsbudget.max_tokens100" in text
    assert "first3codingGrepallowloops.samewrong" in text


def test_alike_policies_say_so() -> None:
    text = Page(page(judgement(), judgement())).text
    assert "Judgement of default (1) and default (2)" in text
    assert "Both decide every call alike." in text


def test_a_session_that_only_one_side_kept_is_shown_for_both() -> None:
    other = judgement("strict")
    other.timelines = [line for line in other.timelines if line.session_id != "first"]
    assert page(judgement(), other).count("21 calls, 4 duplicates.evidence, 1 nudge loops.cycle") == 4
    other.stops = other.stops * (MAX_STOPS // len(other.stops) + 1)
    assert "not among the sessions that were kept for this policy" in Page(page(judgement(), other)).text


def test_calls_past_a_cut_list_are_not_called_different() -> None:
    full = judgement("strict")
    full.stops = [Stop("coding", "x", n, "Bash", "deny", "loops.same", None, pointless=True) for n in range(MAX_STOPS)]
    text = Page(page(judgement(), full)).text
    assert "Only 20,000 stops are kept of strict" in text
    assert "20,000 calls decided differently" in text


@pytest.mark.parametrize(
    ("case", "sentence"), [("no calls", "No calls were found"), ("nothing denied", "denied none of 12 calls")]
)
def test_where_there_is_nothing_to_show_the_page_says_so(case: str, sentence: str) -> None:
    text = Page(page(*CASES[case])).text
    assert sentence in text
    assert "Nothing would have been denied, so nothing wrongly." in text
    assert "nan" not in text.lower()


def test_what_could_not_be_judged_and_what_was_met_is_told() -> None:
    text = Page(page(judgement())).text
    assert "rate: the transcripts have no times" in text
    assert "a.jsonl: 3 calls have no result" in text
    assert "2 lines could not be read." in text


def named(name: str) -> Judgement:
    """
    A judgement that says *name* wherever a transcript may.
    """
    tally = Tally(name, 1, 9, Counter({name: 2}), nudged=Counter({name: 1}))
    stops = [Stop(name, name, n, name, "deny", name, NOON, pointless=False) for n in (1, 3)]
    cells: list[Cell] = [(n, "deny", name) if n in {1, 3} else (n, "allow", "") for n in range(9)]
    return Judgement(name, [tally], {name: name}, stops, {name: tally}, [TimeLine(name, name, name, cells)], [name])


@pytest.mark.parametrize("two", [False, True])
def test_text_of_transcripts_stays_text(two: bool) -> None:
    text = page(named(EVIL), judgement() if two else None)
    seen = Page(text)
    assert {tag for tag, _ in seen.elements} <= TAGS
    assert seen.raw["script"] == SCRIPT
    assert "</script><img src=x onerror=alert(1)>\"'&\\u202egpj\\x00\\x1b[31m\\u200b\\ud800" in seen.text
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    text.encode()


@given(st.text(max_size=200))
@settings(max_examples=40)
def test_no_text_breaks_the_page(name: str) -> None:
    seen = Page(page(named(name)))
    assert {tag for tag, _ in seen.elements} <= TAGS
    assert seen.raw["script"] == SCRIPT


def test_a_name_of_ten_kilobytes_is_cut_in_the_middle() -> None:
    text = page(named("begin" + "x" * 10_000 + "end"))
    assert "beginxxx" in text
    assert "xxxend" in text
    assert "x" * 401 not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ['"', "&", "\u202e", "\N{WHITE HEAVY CHECK MARK}"])
def test_the_page_stays_below_its_size_whatever_it_is_given(name: str) -> None:
    text = page(large(name, calls=400), large(name, calls=400) if name == '"' else None)
    assert len(text.encode()) < MAX_SIZE
    assert "all others" in text


def test_twenty_thousand_stops_are_capped_and_the_page_says_so() -> None:
    found = judgement()
    found.stops = [
        Stop("coding", f"session {n}", n % 50, "Bash", "deny", "duplicates.evidence", NOON, pointless=True)
        for n in range(MAX_STOPS)
    ]
    text = Page(page(found)).text
    assert "500 of the first 20,000 stops" in text
    assert "the first 20,000 of default" in text


def test_the_same_judgement_gives_the_same_page() -> None:
    found = judgement()
    found.tallies[0].denied = Counter(dict(reversed(found.tallies[0].denied.items())))
    found.timelines.reverse()
    assert page(found) == page(judgement())


def test_every_table_is_read_with_the_keyboard() -> None:
    seen = Page(page(judgement()))
    boxes = seen.classes("box")
    assert len(boxes) == 4
    assert all(box.get("tabindex") == "0" and box.get("aria-label") for box in boxes)


def opened(judged: str, folder: Path) -> Page:
    """
    The page as a browser has it.
    """
    return Page(in_browser(judged, folder))


def test_a_browser_shows_what_was_stopped_when_by_which_guard_per_tool_and_session(tmp_path: Path) -> None:
    seen = opened(page(judgement()), tmp_path)
    assert "5 of 40 calls" in seen.text
    assert "25.00" in seen.text
    anchors = {attrs.get("id") for _, attrs in seen.elements}
    assert {"sources", "verdicts", "when", "guards", "tools", "sessions", "stops", "limits"} <= anchors
    assert "4 stops with a time, by hour (UTC)" in seen.text
    assert "duplicates.evidence41" in seen.text, "by guard: denied, of them wrong"
    assert "Bash40512" in seen.text, "by tool: calls, denied, per 1,000"
    assert "call 5: Bash, deny duplicates.evidence, wrong" in seen.titles()
    assert "21 calls, 4 duplicates.evidence, 1 nudge loops.cycle" in seen.text
    assert "button" in {tag for tag, _ in seen.elements}, "the script made buttons of the headings"


@pytest.mark.slow
@pytest.mark.parametrize("case", ["two", "watching", "no calls"])
def test_a_browser_complains_of_nothing(case: str, tmp_path: Path) -> None:
    seen = opened(page(*CASES[case]), tmp_path)
    said = {"no calls": "No calls were found", "watching": "objected 5 times", "two": "5 of 40 calls"}
    assert said[case] in seen.text
