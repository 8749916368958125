"""
The pages of the clients, done as they say.
"""

import subprocess
import sys

from tests.system.docs.test_hooks import shown

from .clients.base import Client
from .model import ANSWER
from .scripts import each


def test_the_three_commands_of_the_page_do_what_it_says(cli: Client) -> None:
    install, watch, report = shown(cli.name, cli.home)
    cli.guard("default", *install[4:])
    tests = cli.program("tests.sh", "echo '1 failed: test_total, expected 3 and got 4'\nexit 1")
    cli.model.says(each(*[cli.shell(tests)] * 4))
    ran = cli.run(watch[-1])
    assert (ran.answer, cli.runs("tests.sh")) == (ANSWER, 2)
    assert f"This exact {cli.shell_tool} call was already made" in cli.model.asked[-1].results[2]
    command = [sys.executable, "-I", "-m", *report]
    told = subprocess.run(command, env=cli.environment(), capture_output=True, text=True, check=True)
    assert "4 recorded calls of 1 session" in told.stdout
