"""
The hooks with the real CLIs: budgets, repeats, people, faults, and `guardrails replay` of what a CLI keeps.
"""

import json
import subprocess
import sys

from guardrails.testing.scripted_openai import Calls, Text, Usage
from tests.system.docs.test_hooks import shown
from tests.tables import table

from .clients.base import Client
from .model import ANSWER, Said
from .scripts import each, refused, stuck, told_to_end
from .wires.asked import Asked


CAP = "version: 1\nbudget: {{max_calls: {}}}\n"
GUARDRAILS = [sys.executable, "-I", "-m", "guardrails"]


@table("limit, least, most", [("max_calls: 3", 3, 3), ("max_tokens: 25000", 1, 3), ("max_cost_usd: 0.02", 1, 3)])
def test_a_spent_budget_of_calls_tokens_or_money_ends_in_an_answer(
    cli: Client, limit: str, least: int, most: int
) -> None:
    look, before = cli.program("look", "echo page $1"), cli.runs("look")
    cli.guard("version: 1\nbudget: {" + limit + "}\n")
    used = Usage(prompt=9_000, completion=1_000)
    cli.model.says(stuck(lambda n: Calls(cli.shell(f"{look} {n}"), usage=used), most=9))
    ran = cli.run()
    assert (ran.code, ran.answer) == (0, ANSWER)
    assert least <= cli.runs("look") - before <= most


def test_a_model_that_goes_on_is_made_to_answer(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.guard(CAP.format(3))
    cli.model.says(lambda asked: Calls(cli.shell(f"{look} {asked.turn}")) if asked.turn < 30 else Text(ANSWER))
    assert cli.run().answer == ANSWER
    assert (cli.runs("look"), len(cli.model.asked)) == (3, 4)


def test_parallel_calls_stay_within_a_cap(cli: Client) -> None:
    looks = [cli.look(cli.file(f"page{n}.txt", f"this is page {n}\n")) for n in range(8)]
    cli.guard(CAP.format(5))
    cli.model.says([Calls(*looks), Text(ANSWER)])
    assert cli.run().answer == ANSWER
    read = cli.model.asked[-1].results
    assert [len(read), sum("this is page" in text for text in read)] == [8, 5]
    assert sum(refused(text) for text in read) == 3


def test_a_sub_agent_draws_from_its_parent(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.guard(CAP.format(10))

    def say(asked: Asked) -> Said:
        if "COUNT THE PAGES" in asked.prompt:
            if asked.turn < 20 and not told_to_end(asked):
                return Calls(cli.shell(f"{look} {asked.turn}"))
            return cli.report(asked, "pages counted")
        if asked.turn == 0:
            return cli.spawn("COUNT THE PAGES")
        waits = cli.await_agents(asked) if asked.turn == 1 else None
        if waits is not None:
            return waits
        return Text(ANSWER) if told_to_end(asked) or asked.turn > 20 else Calls(cli.shell(f"{look} m{asked.turn}"))

    cli.model.says(say)
    ran = cli.run()
    assert ran.answer == ANSWER
    # To start the sub-agent is a call too, and so it is to wait for it.
    assert 6 <= cli.runs("look") <= 9


def test_a_session_taken_up_again_goes_on_with_its_budget(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.guard(CAP.format(4))
    cli.model.says(each(*(cli.shell(f"{look} {n}") for n in range(3))))
    first = cli.run()
    cli.model.says(stuck(lambda n: Calls(cli.shell(f"{look} {n}"))))
    second = cli.run("go on", resume=first.session)
    assert (first.session, second.answer) == (second.session, ANSWER)
    assert cli.runs("look") == 4


def test_tests_run_again_after_an_edit(cli: Client) -> None:
    tests = cli.program("tests", "cat code.txt")
    code = cli.file("code.txt", "one\n")
    edits = [cli.edit(code, old, new) for old, new in (("one", "two"), ("two", "three"), ("three", "four"))]
    run = cli.shell(tests)
    cli.guard()
    cli.model.says(each(cli.look(code), run, edits[0], run, edits[1], run, edits[2], run))
    ran = cli.run()
    assert (ran.answer, cli.runs("tests"), code.read_text()) == (ANSWER, 4, "four\n")
    read = cli.model.asked[-1].results
    assert "four" in read[-1]
    assert not any(refused(text) for text in read)


def test_a_circle_of_looks_is_broken(cli: Client) -> None:
    looks = [cli.look(cli.file(f"{name}.txt", f"nothing in {name}\n")) for name in ("first", "second")]
    cli.guard()
    cli.model.says(each(*looks * 4))
    assert cli.run().answer == ANSWER
    read = cli.model.asked[-1].results
    assert [refused(text) for text in read][-2:] == [True, True]
    assert sum(refused(text) for text in read) >= 2


def test_the_three_commands_of_the_page_refuse_what_brings_nothing_and_report_it(cli: Client) -> None:
    install, watch, report = shown(cli.name, cli.home)
    cli.guard("default", *install[4:])
    tests = cli.program("tests.sh", "echo '1 failed: test_total, expected 3 and got 4'\nexit 1")
    cli.model.says(each(*[cli.shell(tests)] * 4))
    ran = cli.run(watch[-1])
    assert (ran.answer, cli.runs("tests.sh")) == (ANSWER, 2)
    read = cli.model.asked[-1].results
    assert [refused(text) for text in read] == [False, False, True, True]
    assert ("1 failed" in read[1], f"This exact {cli.shell_tool} call was already made" in read[2]) == (True, True)
    command = [*GUARDRAILS, *report[1:]]
    told = subprocess.run(command, env=cli.environment(), capture_output=True, text=True, check=True)
    assert "4 recorded calls of 1 session" in told.stdout


def test_its_own_transcript_replays_as_the_hook_decided(cli: Client) -> None:
    tests, code = cli.program("tests", "echo 1 failed"), cli.file("code.txt", "one\n")
    cli.guard("default", "--observe")
    run = cli.shell(tests)
    cli.model.says(each(run, run, run, cli.edit(code, "one", "two"), run, run, run))
    assert cli.run().answer == ANSWER
    (transcript,) = cli.home.glob(cli.transcripts)
    decided = cli.place / "decisions.jsonl"
    command = [*GUARDRAILS, "replay", "default", str(transcript), "--decisions", str(decided)]
    subprocess.run(command, check=True, capture_output=True, env=cli.environment())
    replayed = [json.loads(line)["code"] for line in decided.read_text().splitlines()]
    calls = [record for record in cli.recorded() if record["event"] == "call"]
    hooked = [next(iter(call["observed"]), None) for call in calls]
    assert hooked == replayed
    assert [why is not None for why in hooked] == [False, False, True, False, False, True, True]


def test_watching_changes_nothing_that_the_model_reads(cli: Client) -> None:
    tests = cli.program("tests", "echo 1 failed")
    cli.model.says(each(*[cli.shell(tests)] * 4))
    cli.run()
    bare = cli.model.asked
    cli.guard("version: 1\nextends: default\nbudget: {max_calls: 3}\ntruncate: {max_bytes: 1KiB}\n", "--observe")
    cli.run()
    for one, other in zip(bare, cli.model.asked[len(bare) :], strict=True):
        assert [cli.plain(text) for text in other.results] == [cli.plain(text) for text in one.results]
        assert other.notes == one.notes
    assert cli.runs("tests") == 8
    assert sum(record.get("event") == "call" for record in cli.recorded()) == 4


def pays(cli: Client) -> None:
    pay = cli.program("pay", "echo paid")
    cli.guard(f"version: 1\napprove: {{tools: [{cli.shell_tool}]}}\n")
    cli.model.says(each(cli.shell(f"{pay} 900")))


def test_a_call_that_needs_a_person_does_not_run_if_nobody_is_there(cli: Client) -> None:
    pays(cli)
    assert (cli.run().code, cli.runs("pay")) == (0, 0)


def test_the_model_goes_on_beside_a_call_that_waits_for_a_person(cli: Client) -> None:
    pays(cli)
    assert cli.run().answer == ANSWER


@table("on_error, runs", [("deny", 0), ("allow", 3)])
def test_without_a_store_work_goes_on_or_nothing_runs_as_the_policy_says(cli: Client, on_error: str, runs: int) -> None:
    look = cli.program("look", "echo page $1")
    cli.store.mkdir(exist_ok=True)
    cli.guard(f"version: 1\non_error: {on_error}\nbudget: {{max_calls: 1}}\n")
    cli.model.says(each(*(cli.shell(f"{look} {n}") for n in range(3))))
    assert cli.run().answer == ANSWER or on_error == "deny"
    assert cli.runs("look") == runs


def test_a_hook_that_hangs_is_given_up_by_the_cli(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    hung = cli.place / "hung"
    hung.write_text("#!/bin/sh\ncat > /dev/null\nexec sleep 60\n")
    hung.chmod(0o755)
    cli.install(str(hung), {cli.before: {"timeout": cli.second}})
    cli.model.says(each(cli.shell(look)))
    assert cli.run().answer == ANSWER
    assert cli.runs("look") == 1
