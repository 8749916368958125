"""
What a person sees and decides, with the real CLIs: approval, and watching only.
"""

from .clients.base import Client
from .model import ANSWER
from .scripts import each


def test_a_call_that_needs_a_person_does_not_run_if_nobody_is_there(cli: Client) -> None:
    pay = cli.program("pay", "echo paid")
    cli.guard(f"version: 1\napprove: {{tools: [{cli.shell_tool}]}}\n")
    cli.model.says(each(cli.shell(f"{pay} 900")))
    assert (cli.run().code, cli.runs("pay")) == (0, 0)


def test_the_model_goes_on_beside_a_call_that_waits_for_a_person(cli: Client) -> None:
    pay = cli.program("pay", "echo paid")
    cli.guard(f"version: 1\napprove: {{tools: [{cli.shell_tool}]}}\n")
    cli.model.says(each(cli.shell(f"{pay} 900")))
    assert cli.run().answer == ANSWER


def test_watching_changes_nothing_that_the_model_reads(cli: Client) -> None:
    tests = cli.program("tests", "echo 1 failed")
    policy = "version: 1\nextends: default\nbudget: {max_calls: 3}\ntruncate: {max_bytes: 1KiB}\n"
    cli.model.says(each(*[cli.shell(tests)] * 4))
    cli.run()
    bare = cli.model.asked
    cli.guard(policy, "--observe")
    cli.run()
    watched = cli.model.asked[len(bare) :]
    for one, other in zip(bare, watched, strict=True):
        assert [cli.plain(text) for text in other.results] == [cli.plain(text) for text in one.results]
        assert other.notes == one.notes
    assert cli.runs("tests") == 8
    assert sum(record.get("event") == "call" for record in cli.recorded()) == 4
