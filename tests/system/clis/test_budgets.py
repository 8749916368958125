"""
Budgets with the real CLIs: spent and answered, over parallel calls, sub-agents and a second process.
"""

from guardrails.testing.scripted_openai import Calls, Text, Usage
from tests.tables import table

from .clients.base import Client
from .model import ANSWER, Said
from .scripts import each, refused, stuck, told_to_end
from .wires.asked import Asked


CAP = "version: 1\nbudget: {{max_calls: {}}}\n"


def test_a_spent_budget_ends_in_an_answer(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.guard(CAP.format(3))
    cli.model.says(stuck(lambda n: Calls(cli.shell(f"{look} {n}"))))
    ran = cli.run()
    assert (ran.code, ran.answer, cli.runs("look")) == (0, ANSWER, 3)
    assert len(cli.model.asked) <= 5


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


@table("limit", ["max_tokens: 25000", "max_cost_usd: 0.02"])
def test_what_the_model_used_counts(cli: Client, limit: str) -> None:
    look = cli.program("look", "echo page $1")
    cli.guard("version: 1\nbudget: {" + limit + "}\n")
    used = Usage(prompt=9_000, completion=1_000)
    cli.model.says(stuck(lambda n: Calls(cli.shell(f"{look} {n}"), usage=used), most=9))
    assert cli.run().answer == ANSWER
    assert 1 <= cli.runs("look") <= 6
