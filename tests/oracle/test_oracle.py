"""
The oracle finds what differs, in its layer, and calls another wording of a hint a matter of text.
"""

import pytest

from .frozen import Entry, differences, read
from .sections import SECTIONS


def test_a_difference_is_found_in_its_layer() -> None:
    before = Entry("a", "budget", {"ran": 1}, {"status": "success"}, "1")
    for after, layer in (
        (Entry("a", "budget", {"ran": 0}, {"status": "success"}, "1"), "decision"),
        (Entry("a", "budget", {"ran": 1}, {"status": "error"}, "1"), "meaning"),
        (Entry("a", "budget", {"ran": 1}, {"status": "success"}, "2"), "text"),
        (Entry("b", "budget"), "decision"),
    ):
        assert {one.layer for one in differences([before], [after])} == {layer}
    assert differences([before], [before]) == []


def test_another_wording_of_a_hint_is_text_and_another_hint_is_meaning() -> None:
    before = [Entry("a", "x", meaning={"hint": "1 stop"}), Entry("b", "x", meaning={"hint": "2 go on"})]
    reworded = [Entry("a", "x", meaning={"hint": "3 end here"}), before[1]]
    swapped = [Entry("a", "x", meaning={"hint": "2 go on"}), before[1]]
    assert [one.layer for one in differences(before, reworded)] == ["text"]
    assert [one.layer for one in differences(before, swapped)] == ["meaning"]


@pytest.mark.system
@pytest.mark.parametrize("section", ["vectors", "hooks", "cases", "stories"])
def test_the_quick_sections_are_as_they_were_frozen(section: str) -> None:
    made = {"decision": 0, "meaning": 0, "text": 0}
    for one in differences(read(section), SECTIONS[section]()):
        made[one.layer] += 1
    assert made == {"decision": 0, "meaning": 0, "text": 0}
