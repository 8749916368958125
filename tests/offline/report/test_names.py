"""
What a tool's name says of it.
"""

from guardrails.offline.report.names import named_once, named_to_read
from tests.tables import table


@table(
    "name, reads",
    [
        ("get_order", True),
        ("orders__list", True),
        ("getOrder", True),
        ("budget_set", False),
        ("forget", False),
        ("", False),
    ],
)
def test_only_the_first_word_says_that_a_tool_reads(name: str, reads: bool) -> None:
    assert named_to_read(name) is reads


@table("name, once", [("send_mail", True), ("bank/pay", True), ("get_order", False), ("resend", False), ("", False)])
def test_only_the_first_word_says_that_a_second_time_is_too_much(name: str, once: bool) -> None:
    assert named_once(name) is once
