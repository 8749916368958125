"""
The whole of a result that was cut, read page by page.
"""

import asyncio
import json

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails import (
    Budget,
    Duplicates,
    Envelope,
    Guard,
    Policy,
    Rule,
    Session,
    Success,
    Summary,
    ToolFilter,
    Truncate,
    guard,
)
from guardrails.core.envelope.content import Cut


TEXT = "x" * 1_000
CUT = [Truncate(max_bytes=300), Summary()]


def opened(*guards: Any, name: str = "s", **settings: Any) -> Session:
    return Policy(guards or CUT, **settings).session(name, clock=lambda: 0.0)


def gives(value: Any) -> Callable[[str, Any], Any]:
    return lambda tool, arguments: value


def read(envelope: Envelope) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(envelope.to_json())
    return said


def shown(envelope: Envelope) -> str:
    """
    The part of the whole that stands in a cut result.
    """
    rendered = envelope.rendered
    assert rendered is not None
    if rendered.text is not None:
        return rendered.text
    cut = orjson.loads(rendered.payload)
    if isinstance(cut, dict):
        return str(cut["_truncated_json"])
    return f"[{cut[-1]['_truncated_json']}" if "_truncated_json" in cut[-1] else rendered.payload.decode()


def pages(session: Session, handle: str, offset: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
    """
    The pages from *offset* to the end, as the model reads them.
    """
    reader = session.wrap(session.result_reader(), returns="envelope")
    found = []
    while True:
        envelope = reader(handle, offset, limit)
        assert envelope.ok
        assert "truncated" not in read(envelope)
        said = read(envelope)
        found.append(said.get("result", said))
        if "next_offset" not in found[-1]:
            assert envelope.is_complete is True
            return found
        assert envelope.is_complete is False
        offset = found[-1]["next_offset"]


def whole(session: Session, handle: str, **where: Any) -> str:
    return "".join(one["text"] for one in pages(session, handle, **where))


json_values = st.recursive(
    st.none() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=5), inner, max_size=20),
    max_leaves=60,
)


@settings(max_examples=200)
@given(
    value=json_values | st.text(alphabet='a\n"\\é\u20ac😀\x7f', min_size=100, max_size=2_000),
    bound=st.integers(256, 2_000),
    limit=st.none() | st.integers(20, 5_000),
    form=st.sampled_from(["nested", "merged"]),
)
def test_the_pages_are_the_whole_and_none_is_cut(value: Any, bound: int, limit: int | None, form: Any) -> None:
    session = opened(Truncate(max_bytes=bound), Summary(), envelope=form)
    session.result_reader()
    envelope = session.call("t", {}, gives(value))
    if envelope.cut is None:
        return
    assert envelope.handle is not None
    uncut = Policy().session("u").call("t", {}, gives(value)).render()
    said = uncut.payload.decode() if uncut.text is None else uncut.text
    reader = session.wrap(session.result_reader(), returns="envelope")
    text, offset = "", 0
    while offset < len(said):
        page = reader(envelope.handle, offset, limit)
        assert len(orjson.dumps(page.value)) <= bound
        assert page.cut is None
        text += page.value["text"]
        offset = page.value.get("next_offset", len(said))
    assert text == said
    assert envelope.cut.original_bytes == uncut.size


@pytest.mark.parametrize("form", ["nested", "merged"])
@pytest.mark.parametrize(
    "value",
    [
        "né\n" * 500,
        [{"id": number, "of": "ü"} for number in range(200)],
        ["x" * 1_000, 2],
        {"rows": list(range(500))},
        ("a",) * 400,
        b"caf\xc3\xa9 " * 200,
        Success({"rows": "y" * 900}, cost_usd=0.1),
    ],
    ids=["text", "list", "first is long", "object", "tuple", "bytes", "success"],
)
def test_the_hint_leads_on_from_where_the_shown_part_ends(value: Any, form: Any) -> None:
    session = opened(envelope=form)
    session.result_reader()
    envelope = session.call("t", {}, gives(value))
    said = read(envelope)
    assert (said["truncated"], said["is_complete"]) == (True, False)
    said_next = f'read on with `read_result`, handle "{said["handle"]}" and offset '
    offset = int(said["next_action_hint"].split(said_next)[1].removesuffix("."))
    rest, all_of_it = whole(session, said["handle"], offset=offset), whole(session, said["handle"])
    assert 0 < offset < len(all_of_it)
    assert all_of_it[offset:] == rest
    assert shown(envelope).startswith(all_of_it[:offset])


def test_without_the_tool_nothing_is_kept_and_the_hint_does_not_name_it() -> None:
    session = opened()
    said = read(session.call("t", {}, gives(TEXT)))
    assert (said["truncated"], said["original_bytes"]) == (True, 1_002)
    assert "handle" not in said
    assert said["next_action_hint"].endswith("Ask for a smaller part: a range, a filter or a page.")
    assert session.policy.wholes.size == 0


def test_a_session_whose_tools_are_named_without_it_does_not_name_it_either() -> None:
    session = Policy(CUT).session("s", tools=[opened])
    session.result_reader()
    assert "handle" not in read(session.call("opened", {}, gives(TEXT)))
    session.wrap(session.result_reader())
    assert "handle" in read(session.call("opened", {"n": 1}, gives(TEXT)))


@pytest.mark.parametrize(
    ("filtered", "named"),
    [({"allow": ("t",)}, False), ({"deny": ("read_*",)}, False), ({"allow": ("t", "read_*")}, True)],
)
def test_a_policy_that_filters_it_out_does_not_name_it(filtered: Any, named: bool) -> None:
    session = opened(ToolFilter(**filtered), *CUT)
    session.result_reader()
    assert ("handle" in read(session.call("t", {}, gives(TEXT)))) is named


def test_a_result_that_is_whole_says_nothing_of_it() -> None:
    session = opened()
    session.result_reader()
    assert {"truncated", "original_bytes", "handle"}.isdisjoint(read(session.call("t", {}, gives("short"))))


@pytest.mark.parametrize("returns", ["json", "envelope", "value"])
def test_it_is_wrapped_like_any_tool(returns: Any) -> None:
    session = opened()
    reader = session.wrap(session.result_reader(), returns=returns)
    handle = read(session.call("t", {}, gives(TEXT)))["handle"]
    page = reader(handle, offset=990)
    value = json.loads(page)["result"] if returns == "json" else page.value if returns == "envelope" else page
    assert value == {"text": "x" * 10, "offset": 990, "total_chars": 1_000}


def test_it_works_in_an_asynchronous_session() -> None:
    async def work() -> None:
        session = opened()
        reader = session.result_reader()

        async def tool(_: str, arguments: Any) -> str:
            return TEXT

        handle = read(await session.acall("t", {}, tool))["handle"]
        page = await session.acall("read_result", {"handle": handle, "limit": 7}, lambda _, given: reader(**given))
        assert page.value == {"text": "x" * 7, "offset": 0, "total_chars": 1_000, "next_offset": 7}

    asyncio.run(work())


def test_a_child_and_its_parent_read_what_either_was_given_and_no_other_session_does() -> None:
    policy = Policy(CUT)
    parent, other = policy.session("p", clock=lambda: 0.0), policy.session("o", clock=lambda: 0.0)
    parent.result_reader()
    handle = read(parent.call("t", {}, gives(TEXT)))["handle"]
    with parent.child("c") as child:
        assert "handle" not in read(child.call("t", {}, gives("y" * 1_000)))
        assert whole(child, handle) == TEXT
        own = read(child.call("t", {"n": 2}, gives("z" * 1_000)))["handle"]
    assert whole(parent, own) == "z" * 1_000
    missing = other.wrap(other.result_reader(), returns="envelope")(handle)
    assert (missing.status, missing.error_type, missing.retryable) == ("error", "not_found", False)


def test_the_same_session_made_anew_in_this_process_still_has_it() -> None:
    policy = Policy(CUT)
    first = policy.session("s")
    first.result_reader()
    handle = read(first.call("t", {}, gives(TEXT)))["handle"]
    first.close()
    assert whole(policy.session("s"), handle) == TEXT
    policy.session("s").forget()
    assert policy.session("s").result_reader()(handle).error_type == "not_found"


def test_the_oldest_goes_first_and_what_to_do_then_is_told() -> None:
    session = opened(Truncate(max_bytes=300, keep=2_500))
    reader = session.result_reader()
    handles = [read(session.call("t", {"n": n}, gives(str(n) * 1_000)))["handle"] for n in range(3)]
    gone = reader(handles[0])
    assert (gone.status, gone.error_type, gone.retryable) == ("error", "not_found", False)
    assert gone.next_action_hint == "Make the call that gave it again, with a narrower request."
    assert [whole(session, handle) for handle in handles[1:]] == ["1" * 1_000, "2" * 1_000]


def test_the_same_result_again_is_kept_once_under_one_handle() -> None:
    session = opened(Truncate(max_bytes=300, keep=1_500))
    session.result_reader()
    first, second = (read(session.call("t", {"n": n}, gives(TEXT)))["handle"] for n in (1, 2))
    assert first == second


@pytest.mark.parametrize("keep", [0, 999])
def test_what_does_not_fit_is_not_kept(keep: int) -> None:
    session = opened(Truncate(max_bytes=300, keep=keep))
    session.result_reader()
    said = read(session.call("t", {}, gives(TEXT)))
    assert "handle" not in said
    assert "Ask for a smaller part" in said["next_action_hint"]


def test_a_rule_says_that_nothing_of_a_tool_is_kept() -> None:
    session = opened(rules=[Rule(match="secret_*", guards={"truncate": {"keep": 0}})])
    session.result_reader()
    assert "handle" not in read(session.call("secret_read", {}, gives(TEXT)))
    assert "handle" in read(session.call("read", {}, gives(TEXT)))


def test_what_an_own_guard_took_out_of_a_result_is_in_no_page() -> None:
    @guard
    class Redact(Guard):
        def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, facts: Any) -> Envelope:
            if isinstance(envelope.value, str):
                envelope.value = envelope.value.replace("key", "***")
            return envelope

    session = opened(Redact(), *CUT)
    session.result_reader()
    handle = read(session.call("t", {}, gives("a key " * 500)))["handle"]
    assert whole(session, handle) == "a *** " * 500


def test_a_failure_that_was_cut_can_be_read_too() -> None:
    session = opened()
    session.result_reader()
    said = read(session.call("t", {}, gives(Envelope("error", {"log": "x" * 900}, error_type="exec_nonzero"))))
    assert (said["status"], said["truncated"]) == ("error", True)
    assert json.loads(whole(session, said["handle"])) == {"log": "x" * 900}


def test_what_a_generator_never_gave_is_not_promised() -> None:
    session = opened(Truncate(max_bytes=300))
    session.result_reader()
    envelope = session.call("t", {}, lambda tool, arguments: ("row" for _ in range(10**6)))
    assert envelope.is_complete is False
    if envelope.handle is not None:
        assert whole(session, envelope.handle)


@pytest.mark.parametrize(("offset", "limit"), [(1_000, None), (5_000, 3), (-1, None), (5.5, None), (True, 3), ("x", 1)])
def test_a_place_outside_the_result_is_an_error_that_says_how_long_it_is(offset: Any, limit: int | None) -> None:
    session = opened()
    reader = session.result_reader()
    handle = read(session.call("t", {}, gives(TEXT)))["handle"]
    said = reader(handle, offset, limit)
    assert (said.status, said.error_type) == ("error", "validation")
    assert "1000 characters" in (said.error_message or "")


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, "9", [1]])
def test_a_limit_that_is_no_number_of_characters_is_an_error(limit: Any) -> None:
    session = opened()
    reader = session.result_reader()
    handle = read(session.call("t", {}, gives(TEXT)))["handle"]
    assert reader(handle, 0, limit).error_type == "validation"


@pytest.mark.parametrize("handle", [None, 5, ["a"], "", "0" * 16, "0" * 17, "\ud800", b"0" * 16])
def test_what_is_no_handle_finds_nothing(handle: Any) -> None:
    assert opened().result_reader()(handle).error_type == "not_found"


@pytest.mark.parametrize("policy", ["default", "strict", "agent"])
def test_no_shipped_policy_takes_reading_page_by_page_for_a_loop(policy: str) -> None:
    session = Policy.load(policy).session("s")
    session.result_reader()
    # Every page looks the same: only the offset tells them apart.
    handle = read(session.call("export", {}, gives("same line\n" * 40_000)))["handle"]
    reader = session.wrap(session.result_reader(), returns="envelope")
    offsets = range(0, 400_000, 10_000) if policy != "strict" else range(0, 200_000, 20_000)
    statuses = [reader(handle, offset, 10_000).code for offset in offsets]
    assert set(statuses) == {None}


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_a_page_that_a_compaction_lost_is_given_again(policy: str) -> None:
    session = Policy.load(policy).session("s")
    session.result_reader()
    handle = read(session.call("export", {}, gives("line\n" * 40_000)))["handle"]
    reader = session.wrap(session.result_reader(), returns="envelope")
    assert [reader(handle, 0, 100).value["text"] for _ in range(2)] == ["line\n" * 20] * 2


def test_a_refused_repeat_says_where_the_whole_is() -> None:
    session = opened(Duplicates(window=5), *CUT)
    session.result_reader()
    first, again = (read(session.call("t", {}, gives(TEXT))) for _ in range(2))
    assert again["status"] == "duplicate_call_blocked"
    assert [again[name] for name in ("truncated", "original_bytes", "handle")] == [True, 1_002, first["handle"]]
    assert again["next_action_hint"].endswith(f'read it with `read_result`, handle "{first["handle"]}".')
    assert whole(session, again["handle"]) == TEXT


def test_a_refused_repeat_does_not_promise_a_whole_that_has_gone() -> None:
    session = opened(Duplicates(window=9), Truncate(max_bytes=300, keep=1_200), Summary())
    session.result_reader()
    read(session.call("t", {}, gives(TEXT)))
    read(session.call("other", {}, gives("y" * 1_000)))
    again = read(session.call("t", {}, gives(TEXT)))
    assert (again["status"], again["truncated"]) == ("duplicate_call_blocked", True)
    assert "handle" not in again
    assert "read_result" not in again["next_action_hint"]


def test_the_same_text_once_more_makes_no_other_go() -> None:
    session = opened(Truncate(max_bytes=300, keep=2_500), Summary())
    reader = session.result_reader()
    handles = [read(session.call("t", {"n": n}, gives(text * 700)))["handle"] for n, text in enumerate("xyy")]
    assert [reader(handle).status for handle in handles] == ["success"] * 3


def test_what_another_session_said_of_its_own_cut_stays() -> None:
    inner, outer = opened(name="inner"), opened(Truncate(), Summary(), name="outer")
    outer.result_reader()
    passed = inner.call("t", {}, gives("short"))
    passed.cut = Cut(9, "of another")
    assert read(outer.call("ask", {}, gives(passed)))["handle"] == "of another"


def test_pages_count_as_calls() -> None:
    session = opened(Budget(max_calls=2), *CUT)
    reader = session.wrap(session.result_reader(), returns="envelope")
    handle = read(session.call("t", {}, gives(TEXT)))["handle"]
    assert [reader(handle, offset).status for offset in (0, 10)] == ["success", "limit_reached"]
