"""
The oracle finds what differs, in its layer.
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


@pytest.mark.system
@pytest.mark.parametrize("section", ["vectors", "hooks", "stories"])
def test_the_quick_sections_are_as_they_were_frozen(section: str) -> None:
    assert differences(read(section), SECTIONS[section]()) == []
