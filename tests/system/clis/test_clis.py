"""
The hooks with the real CLIs: budgets, repeats, people, faults, and `guardrails replay` of what a CLI keeps.
"""

import json
import re
import shlex

from collections.abc import Callable

from guardrails.testing.scripted_openai import Calls, ScriptedCall, Text, Usage
from tests.docs.pages import DOCS, blocks
from tests.tables import table

from .clients import Cli
from .model import ANSWER, Asked, Script


CAP = "version: 1\nbudget: {{max_calls: {}}}\n"


def looks(cli: Cli) -> Callable[..., Calls]:
    """
    Calls of a program that shows the page of a number.
    """
    look = cli.program("look", "echo page $1")
    return lambda page, **more: Calls(cli.shell(f"{look} {page}"), **more)


def each(*turns: ScriptedCall) -> list[Text]:
    """
    A model that makes each of the calls in a turn of its own, whatever it reads, and then answers.
    """
    return [*map(Calls, turns), Text(ANSWER)]


def stuck(turn: Callable[[int], Calls], *, most: int = 12) -> Script:
    """
    A model that goes on with *turn* until it reads that it has to write its final answer; *most* turns at most.
    """
    return lambda asked: Text(ANSWER) if asked.turn >= most or told_to_end(asked) else turn(asked.turn)


def refused(text: str) -> bool:
    """
    Whether the result *text* is a refusal of ours.
    """
    return bool(re.search(r"\b(duplicates|loops|budget|denials)\.[a-z_]+", text))


def told_to_end(asked: Asked) -> bool:
    """
    Whether the model has read that it is to write its final answer, in a result or beside one.
    """
    return any("final answer" in text for text in (*asked.results, *asked.notes))


@table("limit, least, most", [("max_calls: 3", 3, 3), ("max_tokens: 25000", 1, 3), ("max_cost_usd: 0.02", 1, 3)])
def test_a_spent_budget_of_calls_tokens_or_money_ends_in_an_answer(cli: Cli, limit: str, least: int, most: int) -> None:
    look, before = looks(cli), cli.runs("look")
    cli.guard("version: 1\nbudget: {" + limit + "}\n")
    cli.model.says(stuck(lambda n: look(n, usage=Usage(prompt=9_000, completion=1_000)), most=9))
    ran = cli.run()
    assert (ran.code, ran.answer) == (0, ANSWER)
    assert least <= cli.runs("look") - before <= most


def test_a_model_that_goes_on_is_made_to_answer(cli: Cli) -> None:
    look = looks(cli)
    cli.guard(CAP.format(3))
    cli.model.says(lambda asked: look(asked.turn) if asked.turn < 30 else Text(ANSWER))
    assert cli.run().answer == ANSWER
    assert (cli.runs("look"), len(cli.model.asked)) == (3, 4)


def test_parallel_calls_stay_within_a_cap(cli: Cli) -> None:
    cli.guard(CAP.format(5))
    pages = [cli.file(f"page{n}.txt", f"this is page {n}\n") for n in range(8)]
    cli.model.says([Calls(*map(cli.look, pages)), Text(ANSWER)])
    assert cli.run().answer == ANSWER
    read = cli.model.asked[-1].results
    assert [len(read), sum("this is page" in text for text in read)] == [8, 5]
    assert sum(refused(text) for text in read) == 3


def test_a_sub_agent_draws_from_its_parent(cli: Cli) -> None:
    look = looks(cli)
    cli.guard(CAP.format(10))

    def say(asked: Asked) -> Text:
        if "COUNT THE PAGES" in asked.prompt:
            over = asked.turn >= 20 or told_to_end(asked)
            return cli.report("pages counted") if over else look(asked.turn)
        if asked.turn == 0:
            return cli.spawn("COUNT THE PAGES")
        waits = cli.await_agents(asked) if asked.turn == 1 else None
        return waits or (Text(ANSWER) if told_to_end(asked) or asked.turn > 20 else look(f"m{asked.turn}"))

    cli.model.says(say)
    assert cli.run().answer == ANSWER
    # To start the sub-agent is a call too, and so it is to wait for it.
    assert 6 <= cli.runs("look") <= 9


def test_a_session_taken_up_again_goes_on_with_its_budget(cli: Cli) -> None:
    look = looks(cli)
    cli.guard(CAP.format(4))
    cli.model.says([*map(look, range(3)), Text(ANSWER)])
    first = cli.run()
    cli.model.says(stuck(look))
    second = cli.run("go on", resume=first.session)
    assert (first.session, second.answer) == (second.session, ANSWER)
    assert cli.runs("look") == 4


def test_tests_run_again_after_an_edit(cli: Cli) -> None:
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


def test_a_circle_of_looks_is_broken(cli: Cli) -> None:
    files = [cli.file(f"{name}.txt", f"nothing in {name}\n") for name in ("first", "second")]
    cli.guard()
    cli.model.says(each(*[cli.look(file) for file in files * 4]))
    assert cli.run().answer == ANSWER
    assert [refused(text) for text in cli.model.asked[-1].results][-2:] == [True, True]


def test_the_three_commands_of_the_page_refuse_what_brings_nothing_and_report_it(cli: Cli) -> None:
    [block] = [text for _, text, _ in blocks(DOCS / "coding-clis.md", "sh") if f"\n{cli.name} " in text]
    install, watch, report = (shlex.split(line.replace("~/", f"{cli.home}/")) for line in block.splitlines())
    assert install[:4] == ["guardrails", "hook", "install", cli.name]
    cli.guard("default", *install[4:])
    tests = cli.program("tests.sh", "echo '1 failed: test_total, expected 3 and got 4'\nexit 1")
    cli.model.says(each(*[cli.shell(tests)] * 4))
    ran = cli.run(watch[-1])
    assert (ran.answer, cli.runs("tests.sh")) == (ANSWER, 2)
    read = cli.model.asked[-1].results
    assert [refused(text) for text in read] == [False, False, True, True]
    assert ("1 failed" in read[1], f"This exact {cli.shell_tool} call was already made" in read[2]) == (True, True)
    assert "4 recorded calls of 1 session" in cli.guardrails(*report[1:])


def test_its_own_transcript_replays_as_the_hook_decided(cli: Cli) -> None:
    tests, code = cli.program("tests", "echo 1 failed"), cli.file("code.txt", "one\n")
    cli.guard("default", "--observe")
    run = cli.shell(tests)
    cli.model.says(each(run, run, run, cli.edit(code, "one", "two"), run, run, run))
    assert cli.run().answer == ANSWER
    (transcript,) = cli.home.glob(cli.transcripts)
    decided = cli.place / "decisions.jsonl"
    cli.guardrails("replay", "default", transcript, "--decisions", decided)
    replayed = [json.loads(line)["code"] for line in decided.read_text().splitlines()]
    hooked = [next(iter(call["observed"]), None) for call in cli.recorded()]
    assert hooked == replayed
    assert [why is not None for why in hooked] == [False, False, True, False, False, True, True]


def test_watching_changes_nothing_that_the_model_reads(cli: Cli) -> None:
    tests = cli.program("tests", "echo 1 failed")
    cli.model.says(each(*[cli.shell(tests)] * 4))
    cli.run()
    bare = [*cli.model.asked]
    cli.guard("version: 1\nextends: default\nbudget: {max_calls: 3}\ntruncate: {max_bytes: 1KiB}\n", "--observe")
    cli.run()
    for one, other in zip(bare, cli.model.asked[len(bare) :], strict=True):
        assert [cli.plain(text) for text in other.results] == [cli.plain(text) for text in one.results]
        assert other.notes == one.notes
    assert cli.runs("tests") == 8
    assert len(cli.recorded()) == 4


def test_a_call_that_needs_a_person_does_not_run_if_nobody_is_there(cli: Cli) -> None:
    pay = cli.program("pay", "echo paid")
    cli.guard(f"version: 1\napprove: {{tools: [{cli.shell_tool}]}}\n")
    cli.model.says(each(cli.shell(f"{pay} 900")))
    ended = cli.run()
    assert (ended.code, cli.runs("pay")) == (0, 0)
    # The model goes on beside it; Gemini CLI without a person ends the run, with no answer.
    assert ended.answer == ("" if cli.name == "gemini" else ANSWER)


@table("on_error, runs", [("deny", 0), ("allow", 3)])
def test_without_a_store_work_goes_on_or_nothing_runs_as_the_policy_says(cli: Cli, on_error: str, runs: int) -> None:
    look = looks(cli)
    cli.store.mkdir(exist_ok=True)
    cli.guard(f"version: 1\non_error: {on_error}\nbudget: {{max_calls: 1}}\n")
    cli.model.says([*map(look, range(3)), Text(ANSWER)])
    assert cli.run().answer == ANSWER or on_error == "deny"
    assert cli.runs("look") == runs


def test_a_hook_that_hangs_is_given_up_by_the_cli(cli: Cli) -> None:
    look, hung = looks(cli), cli.program("hung", "cat > /dev/null\nexec sleep 600")
    cli.install(str(cli.work / hung), cli.before, timeout=cli.second)
    cli.model.says([look(1), Text(ANSWER)])
    assert cli.run().answer == ANSWER
    assert cli.runs("look") == 1
