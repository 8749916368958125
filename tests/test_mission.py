"""
Each behaviour that the library was asked for, by its number, through the public names alone.
"""

import asyncio
import json
import logging
import random

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pytest

from pydantic import BaseModel, Field, model_validator
from typer.testing import CliRunner

import guardrails

from guardrails import Budget, JsonLines, Policy, Retryable, Session, Summary, Tool, Validation
from guardrails.agent.builtin import Spawn, Web, builtin_tools
from guardrails.agent.conversations import Conversations
from guardrails.cli import app
from guardrails.errors import LoopLimitExceeded, SessionError
from guardrails.testing.scripted_openai import Calls, Reply, ScriptedOpenAI, Text, call
from tests.children import is_gone, until
from tests.core.guards.calls import gives
from tests.session.conftest import read as model_of
from tests.tables import table


class RateLimitError(Exception):
    status_code = 429


# A. Envelopes, budgets, duplicates, validation, learned retryability


def test_a1_a_success_tells_what_was_asked_how_much_there_is_and_what_comes_next() -> None:
    session = Policy([Summary()], tools=[Tool(name="search_hotels", read_only=True)]).session("s")
    read = model_of(session.call("search_hotels", {"city": "Kyoto"}, gives([{"id": "h_1"}])))
    assert read["status"] == "success"
    assert read["query_summary"] == {"city": "Kyoto"}
    assert read["results"] == [{"id": "h_1"}]
    assert (read["total_matches"], read["is_complete"]) == (1, True)
    assert read["next_action_hint"]


def test_a2_an_empty_success_and_a_failure_never_look_alike() -> None:
    session = Policy([Summary()]).session("s")
    empty = model_of(session.call("search", {"q": "a"}, gives([])))
    failed = model_of(session.call("search", {"q": "b"}, gives(OSError("no route"))))
    assert (empty["status"], empty["results"]) == ("success", [])
    assert failed["status"] == "error"
    assert not {"results", "result", "total_matches"} & set(failed)


@table(
    "error, kind",
    [
        (PermissionError("not yours"), "permission"),
        (type("AuthenticationError", (Exception,), {"status_code": 401})("bad key"), "auth"),
        (ValueError("city must not be empty"), "validation"),
    ],
)
def test_a3_a_failure_says_its_type_and_whether_the_same_call_pays_again(error: Exception, kind: str) -> None:
    session = Policy([Retryable()]).session("s")
    passing = model_of(session.call("search", {"q": "a"}, gives(TimeoutError("no answer"))))
    assert (passing["error_type"], passing["error_message"], passing["retryable"]) == ("timeout", "no answer", True)
    assert passing["max_retries_remaining"] >= 1
    assert passing["retry_after_ms"] >= 0
    lasting = model_of(session.call("book", {"q": "b"}, gives(error)))
    assert (lasting["error_type"], lasting["retryable"]) == (kind, False)


def test_a4_budgets_hold_calls_cost_time_and_runs_of_one_tool(clock: Any) -> None:
    def codes(policy: Policy, step: float = 0.0) -> list[str | None]:
        session = policy.session("s", clock=clock)
        found = []
        for n in range(4):
            found.append(session.call("t", {"n": n}, gives(n)).code)
            clock.advance(step)
        return found

    assert codes(Policy([Budget(max_calls=2)]))[2:] == ["budget.max_calls"] * 2
    paid = Policy([Budget(max_cost_usd=0.25)], tools=[Tool(name="t", cost_usd=0.1)])
    assert codes(paid)[2:] == ["budget.max_cost_usd"] * 2
    assert codes(Policy([Budget(max_elapsed=15)]), step=10)[2:] == ["budget.max_elapsed"] * 2
    assert codes(Policy([guardrails.Streak(max_same=2)]))[2:] == ["streak.max_same"] * 2


def test_a4_the_incident_of_436_requests_is_stopped_within_its_first_second(clock: Any) -> None:
    session = Policy([guardrails.Growth(max_requests_per_second=20, max_tokens_per_minute=20_000_000)]).session(
        "s", clock=clock
    )
    begin = clock.now
    for _ in range(436):
        if session.exhausted:
            break
        session.request()
        session.charge(model="m", usage={"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000})
        clock.advance(1 / 224)
    assert session.exhausted
    assert clock.now - begin < 1


def test_a5_a_spent_budget_disables_tools_and_forces_the_answer() -> None:
    session = Policy([Budget(max_calls=1)]).session("s")
    last = session.call("t", {}, gives(1))
    assert model_of(last)["limit_reached"] is True
    assert session.exhausted
    assert session.tool_choice("auto") == "none"
    assert model_of(session.call("t", {"n": 2}, gives(1)))["status"] == "limit_reached"


def test_a6_an_exact_repeat_among_the_last_five_is_answered_with_the_earlier_result() -> None:
    session = Policy([guardrails.Duplicates(window=5)]).session("s")
    session.call("search_hotels", {"city": "Kyoto", "max": 1}, gives(["h_1"]))
    again = model_of(session.call("search_hotels", {"max": 1.0, "city": "Kyoto"}, gives(["never"])))
    assert again["status"] == "duplicate_call_blocked"
    assert again["message"] == (
        "This exact search_hotels call was already made earlier in this conversation. "
        "Use the previous result instead of calling again."
    )
    assert (again["retryable"], again["previous_result"]) == (False, ["h_1"])
    for n in range(5):
        session.call("other", {"n": n}, gives(n))
    assert session.call("search_hotels", {"city": "Kyoto", "max": 1}, gives(["h_2"])).value == ["h_2"]


class Stay(BaseModel):
    check_in: int
    check_out: Annotated[int, Field(le=365)]

    @model_validator(mode="after")
    def in_order(self) -> "Stay":
        if self.check_out <= self.check_in:
            raise ValueError("check_out must be after check_in")
        return self


def test_a7_one_model_is_the_schema_of_the_tool_and_the_check_before_it() -> None:
    registry = guardrails.Registry()
    stays: list[Stay] = []

    def book(stay: Stay) -> str:
        """
        Book a stay.
        """
        stays.append(stay)
        return "booked"

    registry.register(book, parameters=Stay)
    schema = registry.schemas()[0]["function"]["parameters"]
    assert schema["properties"]["check_out"]["maximum"] == 365
    session = Policy([Validation()], tools=registry.tools).session("s")
    wrong = model_of(session.call("book", {"check_in": 1, "check_out": 400}, registry.execute))
    assert wrong["status"] == "validation_error"
    assert [error["field"] for error in wrong["errors"]] == ["check_out"]
    assert wrong["errors"][0]["message"]
    assert (wrong["retryable"], wrong["retryable_after_correction"]) == (False, True)
    assert wrong["user_facing_hint"] or wrong["next_action_hint"]
    assert session.call("book", {"check_in": "1", "check_out": 3}, registry.execute).ok
    assert stays == [Stay(check_in=1, check_out=3)]


def test_a8_a_result_stands_alone_with_state_and_progress() -> None:
    session = Policy([Budget(max_calls=5), Summary()]).session("s")
    session.call("search", {"q": "a"}, gives(["x"]))
    read = model_of(session.call("search", {"q": "b"}, gives(["x", "y"])))
    assert read["query_summary"] == {"q": "b"}
    assert read["progress"]["calls_used"] == 2
    assert read["progress"]["calls_left"] == 3
    assert "search" in session.digest()


def test_a9_after_three_rate_limits_in_a_row_the_fourth_is_not_retryable(clock: Any) -> None:
    session = Policy([Retryable()]).session("s", clock=clock)
    answers = []
    for _ in range(4):
        answers.append(session.call("search", {"q": "a"}, gives(RateLimitError("slow down"))).retryable)
        clock.advance(600)
    assert answers == [True, True, True, False]


def week(path: Path, clock: Any, works_after: float) -> None:
    """
    Records of sessions in which a rate limit passes after *works_after* seconds.
    """
    draw, policy = random.Random(7), Policy.load("observe")
    with JsonLines(path) as sink:
        for n in range(400):
            clock.advance(1_000)
            session = policy.session(f"s{n}", records=sink, clock=clock)
            session.call("rates", {"n": n}, gives(RateLimitError("busy")))
            wait = draw.choice((5, 40))
            clock.advance(wait)
            outcome = gives("1.08") if wait >= works_after else gives(RateLimitError("busy"))
            session.call("rates", {"n": n}, outcome)


def trained(tmp_path: Path, clock: Any) -> str:
    week(tmp_path / "week.jsonl", clock, works_after=30)
    result = CliRunner().invoke(app, ["train", str(tmp_path / "week.jsonl"), "-o", str(tmp_path / "model.json")])
    assert result.exit_code == 0, result.output
    return str(tmp_path / "model.json")


def test_a10_a11_a_model_of_the_records_decides_whether_and_when_a_retry_pays(tmp_path: Path, clock: Any) -> None:
    pytest.importorskip("sklearn")
    session = Policy([Retryable(model=trained(tmp_path, clock))]).session("new", clock=clock)
    failed = session.call("rates", {"n": -1}, gives(RateLimitError("busy")))
    assert failed.retryable is True
    assert failed.retry_after_ms is not None
    assert 5_000 < failed.retry_after_ms <= 60_000
    assert json.loads((tmp_path / "model.json").read_text())


def test_a11_a_declared_flag_is_a_prior() -> None:
    policy = Policy([Retryable()], tools=[Tool(name="pay", retryable=False), Tool(name="look", retryable=True)])
    session = policy.session("s")
    assert session.call("pay", {}, gives(TimeoutError("slow"))).retryable is False
    assert session.call("look", {}, gives(TimeoutError("slow"))).retryable is True


def test_a12_slightly_varied_calls_that_bring_nothing_new_are_noticed() -> None:
    policy = Policy.load("default", tools=[Tool(name="search_flights", read_only=True)])
    session = policy.session("s")
    envelopes = []
    for n in range(1, 13):
        session.begin_turn()
        query = {"query": f"cheap flights from Berlin to Tokyo in may option {n}", "limit": 10 + n}
        envelopes.append(session.call("search_flights", query, gives([{"flight": "LH 1", "price": 900}])))
    assert any(envelope.code and envelope.code.startswith("loops.") for envelope in envelopes)


def test_a13_records_say_which_tool_to_redesign(tmp_path: Path, clock: Any) -> None:
    week(tmp_path / "week.jsonl", clock, works_after=30)
    result = CliRunner().invoke(app, ["report", str(tmp_path / "week.jsonl"), "--json"])
    assert result.exit_code == 0, result.output
    tools = json.loads(result.stdout)["tools"]
    assert [tool["tool"] for tool in tools] == ["rates"]
    assert any("retr" in key for key in tools[0])


def test_a14_an_author_of_an_mcp_server_returns_state_completion_and_retryability() -> None:
    pytest.importorskip("mcp")
    from mcp import Client
    from mcp.server import MCPServer

    from guardrails.mcp import AnsweringTools

    server = MCPServer("hotels")
    tool = AnsweringTools(server, Policy([Budget(max_calls=4), Retryable(), Summary()]))

    @tool(read_only=True)
    def search_hotels(city: str) -> list[dict[str, Any]]:
        """
        Find hotels.
        """
        if city == "down":
            raise TimeoutError("the supplier did not answer")
        return [{"id": 1}]

    async def answers() -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool("search_hotels", {"city": city}) for city in ("Kyoto", "down")]

    good, bad = (json.loads(answer.content[0].text.splitlines()[-1]) for answer in asyncio.run(answers()))
    assert (good["status"], good["is_complete"], good["progress"]["calls_used"]) == ("success", True, 1)
    assert (bad["status"], bad["retryable"]) == ("error", True)


# B. The tool-loop limit, and C. the forced tool choice


MESSAGE = "Tool call limit reached (3). Stopping tool loop."


def test_b1_the_result_that_reaches_the_turn_limit_says_so_beside_its_own_fields() -> None:
    session = Policy([Budget(max_turns=3)], envelope="merged").session("s")
    for n in range(3):
        session.begin_turn()
        text = session.call("grep", {"n": n}, gives({"output": f"hit {n}", "count": 1})).to_json()
    assert json.loads(text) == {"output": "hit 2", "count": 1, "limit_reached": True, "limit_message": MESSAGE}


@table(
    "result, expected",
    [
        ('{"output": "x", "count": 1}', {"output": "x", "count": 1}),
        ("[1, 2]", {"result": [1, 2]}),
        ("plain text", {"result": "plain text"}),
        ("null", {"result": None}),
    ],
)
def test_b5_two_fields_are_added_to_the_json_text_of_a_result(result: str, expected: dict[str, Any]) -> None:
    assert json.loads(guardrails.limit_fields(result, MESSAGE)) == {
        **expected,
        "limit_reached": True,
        "limit_message": MESSAGE,
    }
    assert guardrails.limit_fields(result, None) == result


@pytest.fixture
def model() -> Callable[..., Any]:
    """
    Runs the loop with the real client against a scripted server; returns the result and the requests.
    """
    openai = pytest.importorskip("openai")
    from guardrails.integrations.openai import run

    def ask(session: Session, calls: int = 99, **settings: Any) -> tuple[Any, list[dict[str, Any]]]:
        def script(body: Any, n: int) -> Reply:
            if body.get("tool_choice") == "none" or n >= calls:
                return Text("the answer")
            return Calls(call("grep", {"pattern": f"p{n}"}))

        def grep(pattern: str) -> dict[str, Any]:
            """
            Search.
            """
            return {"output": pattern}

        with (
            ScriptedOpenAI(script) as server,
            openai.OpenAI(base_url=server.base_url, api_key="-", max_retries=0) as client,
        ):
            settings = {"model": "gpt-5-mini", "messages": "go", "tools": [grep], **settings}
            return run(client, session, **settings), server.requests

    return ask


@pytest.mark.system
def test_b2_after_the_limit_tools_are_listed_but_off_and_the_model_answers(model: Any) -> None:
    result, requests = model(Policy([Budget(max_turns=3)]).session("s"))
    assert [request.get("tool_choice") for request in requests][-1] == "none"
    assert all(request["tools"] for request in requests)
    assert (len(requests), result.answer, result.ended) == (4, "the answer", "forced")


@pytest.mark.system
def test_b3_a_streamed_loop_ends_alike(model: Any) -> None:
    texts: list[str] = []
    result, requests = model(Policy([Budget(max_turns=3)]).session("s"), stream=True, on_text=texts.append)
    assert (len(requests), result.answer, "".join(texts)) == (4, "the answer", "the answer")


@pytest.mark.system
def test_b4_a_conversation_is_kept_and_goes_on_after_its_limit_is_raised(model: Any, tmp_path: Path) -> None:
    policy = Policy([Budget(max_turns=1)])
    with Conversations(tmp_path / "chats.db") as chats:
        chat = chats.start("trip", messages=[])
        chat.append({"role": "user", "content": "go"})
        model(policy.session("trip", store=chats.store), messages=chat)
        messages = list(chat)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    with Conversations(tmp_path / "chats.db") as chats:
        chat = chats.resume("trip")
        assert list(chat) == messages
        session = policy.session("trip", store=chats.store)
        session.extend(max_turns=2)
        chat.append({"role": "user", "content": "go on"})
        more, requests = model(session, messages=chat)
    assert requests[0]["messages"][: len(messages)] == messages
    assert len(requests) == 3
    assert more.answer == "the answer"


@pytest.mark.system
@table(
    "choice, after",
    [
        ({"type": "function", "function": {"name": "grep"}}, "absent"),
        ("required", "absent"),
        ("auto", "auto"),
        ("none", None),
    ],
)
def test_c1_a_forced_choice_holds_for_the_first_request_only(choice: Any, after: str | None, model: Any) -> None:
    _, requests = model(Policy([]).session("s"), calls=2, tool_choice=choice)
    choices = [request.get("tool_choice", "absent") for request in requests]
    assert choices == [choice] + [after] * (len(requests) - 1)
    assert (len(requests) == 1) == (choice == "none")


@pytest.mark.system
def test_c2_a_strategy_decides_turn_by_turn_below_the_none_of_a_spent_session(model: Any) -> None:
    asked: list[tuple[int, int]] = []

    def strategy(call_count: int, turn_count: int) -> Any:
        asked.append((call_count, turn_count))
        return "required" if turn_count == 1 else "auto"

    _, requests = model(Policy([Budget(max_turns=3)]).session("s"), strategy=strategy)
    assert [request["tool_choice"] for request in requests] == ["auto", "required", "auto", "none"]
    assert asked[:3] == [(0, 0), (1, 1), (2, 2)]


# D. The tool-call lifecycle


@pytest.mark.system
def test_d1_the_loop_runs_until_text_or_the_iterations_are_over(model: Any) -> None:
    result, requests = model(Policy([]).session("s"), calls=2)
    assert (result.answer, len(requests)) == ("the answer", 3)
    roles = [(message["role"], message.get("tool_call_id")) for message in requests[-1]["messages"]]
    assert [role for role, _ in roles] == ["user", "assistant", "tool", "assistant", "tool"]
    assert all(identity for role, identity in roles if role == "tool")
    _, requests = model(Policy([]).session("t"))
    assert len(requests) == 21
    with pytest.raises(LoopLimitExceeded, match=r"max tool iterations \(20\) exceeded"):
        model(Policy([]).session("u"), on_limit="raise")
    result, _ = model(Policy([]).session("v"), max_tool_iterations=0)
    assert result.iterations == 1


def test_d2_a_registry_gives_schemas_by_name_and_the_last_registration_wins() -> None:
    registry = guardrails.Registry()
    registry.register(lambda: "b", name="b", description="B")
    registry.register(lambda: "old", name="a", description="old")
    registry.register(lambda: "new", name="a", description="new")
    schemas = registry.schemas()
    assert [schema["type"] for schema in schemas] == ["function", "function"]
    assert [(s["function"]["name"], s["function"]["description"]) for s in schemas] == [("a", "new"), ("b", "B")]
    assert registry.execute("a", {}) == "new"


def test_d3_a_result_is_cut_by_its_type() -> None:
    session = Policy([guardrails.Truncate(max_bytes=65_536)]).session("s")
    text = model_of(session.call("t", {"n": 1}, gives("x" * 100_000)))["result"]
    rows = model_of(session.call("t", {"n": 2}, gives([{"n": n} for n in range(20_000)])))["results"]
    whole = model_of(session.call("t", {"n": 3}, gives({"text": "y" * 100_000})))["result"]
    assert text.startswith("xxx")
    assert not text.endswith("xxx")
    assert len(text) < 66_500
    assert (rows[0], rows[-1]["_truncated"]) == ({"n": 0}, True)
    assert rows[-1]["omitted"] == 20_000 - (len(rows) - 1)
    assert whole["original_bytes"] > 100_000
    assert whole["_truncated_json"].startswith('{"text":"yyy')


@table(
    "error, kind",
    [
        (FileNotFoundError("no a.txt"), "not_found"),
        (PermissionError("no"), "permission"),
        (TimeoutError("late"), "timeout"),
        (RuntimeError("broken"), "other"),
    ],
)
def test_d4_errors_are_data_and_the_session_goes_on(error: Exception, kind: str) -> None:
    registry = guardrails.Registry()
    registry.register(gives(error), name="t", parameters={"type": "object"})
    session = Policy([Validation()], tools=registry.tools).session("s")
    assert session.call("t", {}, gives(error)).error_type == kind
    missing = session.call("gone", {}, registry.execute)
    assert missing.error_type == "tool_missing"


def test_d5_servers_are_read_from_a_file_and_their_tools_bear_the_servers_name(tmp_path: Path) -> None:
    from guardrails.mcp import read_servers

    path = tmp_path / "agent.toml"
    path.write_text(
        '[tools.mcp_servers.time]\ncommand = "mcp-server-time"\nargs = ["--utc"]\n'
        '[tools.mcp_servers.far]\nurl = "https://example.com/mcp"\n'
        '[tools.mcp_servers.neither]\nnote = "later"\n'
    )
    servers = read_servers(path)
    assert [(server.name, server.command, server.args, server.url) for server in servers] == [
        ("time", "mcp-server-time", ("--utc",), None),
        ("far", None, (), "https://example.com/mcp"),
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path)
    return work


def test_d6_no_path_leaves_the_workspace(folder: Path) -> None:
    policy = Policy([guardrails.Workspace(root=str(folder))], tools=[Tool(name="read_file", paths=("path",))])
    session = policy.session("s")
    for n, path in enumerate(("../secret.txt", "link/secret.txt", str(folder.parent / "secret.txt"))):
        envelope = session.call("read_file", {"path": path, "n": n}, gives("never"))
        assert (envelope.status, envelope.error_type) == ("denied", "invalid_path"), path
    assert session.call("read_file", {"path": "a/../b.txt"}, gives("inside")).ok


COMMANDS = Path(__file__).with_name("mission_commands.txt")


def test_d7_commands_of_the_list_are_refused_in_any_case() -> None:
    pytest.importorskip("tree_sitter_bash")
    session = Policy.load("agent").session("s")
    commands = COMMANDS.read_text().splitlines()
    assert len(commands) >= 8
    for command in commands:
        envelope = session.call("exec_shell", {"command": command}, gives("ran"))
        assert (envelope.status, envelope.error_type) == ("denied", "permission"), command
    assert session.call("exec_shell", {"command": "ls -l"}, gives("ran")).ok


@table("name", ["", "..", "a/b", "a\\b", "a\0b", "a\nb", "x" * 257])
def test_d8_no_session_has_a_name_that_could_be_a_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(SessionError):
        Policy([]).session(name, records=tmp_path / "calls.jsonl")
    assert not any(tmp_path.iterdir()), "no file is touched"


def test_d9_control_characters_leave_what_a_model_reads() -> None:
    session = Policy([]).session("s")
    dirty = "a\0b\x1bc\x7fd\n\te\r"
    assert model_of(session.call("t", {}, gives(dirty)))["result"] == "abcd\n\te\r"
    assert session.call("t", {"n": 1}, gives(ValueError(dirty))).error_message == "ValueError: abcd\n\te"


@pytest.mark.system
@table("wire, stream", product(["chat", "responses"], [False, True]))
def test_d9_they_leave_what_a_model_says_and_asks_for_too(wire: Any, stream: bool) -> None:
    openai = pytest.importorskip("openai")
    from guardrails.integrations.openai import run

    shown, given = list[str](), list[Any]()
    with ScriptedOpenAI([Calls(call("grep", {"q": "a\0b\x1bc\n"})), Text("he\0l\x7flo\n")]) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="-")
        tools = [Tool(name="grep", parameters={"type": "object"}).openai(wire)]
        settings: Any = {"wire": wire, "stream": stream, "on_text": shown.append, "model": "m", "tools": tools}
        run(client, Policy([]).session("s"), messages="go", execute=lambda _, asked: given.append(asked), **settings)
        client.close()
        assert "\\u0000" not in json.dumps(server.requests[1])
    assert ("".join(shown), given) == ("hello\n", [{"q": "abc\n"}])


def test_d10_there_are_eleven_tools_and_files_can_be_written_and_edited(folder: Path) -> None:
    spawn, web = Spawn(Policy().session("child"), lambda *_: ""), Web(search="http://127.0.0.1:1/?q={query}")
    registry = builtin_tools(folder, memory=folder / "notes.db", web=web, spawn=spawn, message=print)
    assert set(registry) == {
        "read_file", "write_file", "edit_file", "list_directory", "exec_shell", "memory_read", "memory_write",
        "web_search", "web_fetch", "spawn", "message",
    }  # fmt: skip
    session = Policy([Validation()], tools=registry.tools).session("s")
    for tool, arguments, shown in (
        ("write_file", {"path": "a.txt", "content": "one two"}, ""),
        ("edit_file", {"path": "a.txt", "old_text": "two", "new_text": "three"}, ""),
        ("memory_write", {"key": "k", "text": "a note"}, ""),
        ("read_file", {"path": "a.txt"}, "one three"),
        ("list_directory", {"path": "."}, "a.txt"),
        ("memory_read", {"query": "k"}, "a note"),
    ):
        envelope = session.call(tool, arguments, registry.execute)
        assert envelope.ok
        assert shown in json.dumps(envelope.value)


@pytest.mark.system
def test_d11_the_loop_logs_its_steps(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="guardrails"):
        model(Policy([]).session("s"), calls=1)
        Policy([]).session("t").call("t", {}, gives(ValueError("broken")))
    events = {record.getMessage(): vars(record) for record in caplog.records}
    assert (events["executing tool calls"]["iteration"], events["executing tool calls"]["count"]) == (1, 1)
    assert events["tool loop complete, returning text response"]["iterations"] == 1
    assert events["executing tool"]["tool"] == events["tool execution failed"]["tool"] == "t"
    assert "broken" in events["tool execution failed"]["error"]


@pytest.mark.system
def test_d12_a_command_that_takes_too_long_is_killed(folder: Path) -> None:
    registry = builtin_tools(folder, web=False, sandbox="none")
    session = Policy([Validation()], tools=registry.tools).session("s")
    command = {"command": "sleep 600 & echo $! > pid; sleep 600", "timeout": 3}
    envelope = session.call("exec_shell", command, registry.execute)
    assert envelope.error_type == "timeout"
    until(lambda: is_gone((folder / "pid").read_text().strip()))


def test_d12_a_call_ends_at_its_time_limit() -> None:
    policy = Policy([], tools=[Tool(name="slow", timeout=0.05)])

    async def execute(tool: str, arguments: Any) -> Any:
        await asyncio.sleep(600)

    envelope = asyncio.run(policy.session("s").acall("slow", {}, execute))
    assert (envelope.status, envelope.error_type) == ("error", "timeout")


def test_each_row_of_the_mission_has_a_test_of_its_number() -> None:
    rows = [f"{part}{n}" for part, most in {"a": 14, "b": 5, "c": 2, "d": 12}.items() for n in range(1, most + 1)]
    names = [part for name in globals() if name.startswith("test_") for part in name.split("_")]
    assert [row for row in rows if row not in names] == []
