"""
Hooks that fail or hang, with the real CLIs: the work goes on, or nothing runs, as the policy says.
"""

from .clients.base import Client
from .model import ANSWER
from .scripts import each


def test_work_goes_on_if_the_store_cannot_be_used(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.store.mkdir()
    cli.guard("version: 1\non_error: allow\nbudget: {max_calls: 1}\n")
    cli.model.says(each(*(cli.shell(f"{look} {n}") for n in range(3))))
    assert cli.run().answer == ANSWER
    assert cli.runs("look") == 3


def test_nothing_runs_if_the_store_cannot_be_used_and_the_policy_is_closed(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    cli.store.mkdir()
    cli.guard("version: 1\non_error: deny\nbudget: {max_calls: 9}\n")
    cli.model.says(each(*(cli.shell(f"{look} {n}") for n in range(3))))
    cli.run()
    assert cli.runs("look") == 0


def test_a_hook_that_hangs_is_given_up_by_the_cli(cli: Client) -> None:
    look = cli.program("look", "echo page $1")
    hung = cli.place / "hung"
    hung.write_text("#!/bin/sh\ncat > /dev/null\nexec sleep 60\n")
    hung.chmod(0o755)
    cli.install(str(hung), {cli.before: {"timeout": cli.second}})
    cli.model.says(each(cli.shell(look)))
    assert cli.run().answer == ANSWER
    assert cli.runs("look") == 1
