"""
Tools of an MCP server that a CLI has, behind our hook.
"""

from .clients.base import Client
from .model import ANSWER
from .scripts import each, refused


def test_a_repeat_of_a_tool_of_an_mcp_server_is_refused(cli: Client) -> None:
    cli.serve()
    cli.guard()
    cli.model.says(each(*[cli.count("Emma") for _ in range(4)]))
    assert cli.run().answer == ANSWER
    assert [refused(text) for text in cli.model.asked[-1].results] == [False, False, True, True]
    assert cli.runs("books") == 2


def test_a_result_of_an_mcp_server_that_is_too_long_is_cut(cli: Client) -> None:
    cli.serve()
    cli.guard("version: 1\ntruncate: {max_bytes: 1KiB}\n")
    cli.model.says(each(cli.count("long")))
    assert cli.run().answer == ANSWER
    (read,) = cli.model.asked[-1].results
    assert "page 0 of the book" in read
    assert "page 250 of the book" not in read
    assert len(read) < 2500
