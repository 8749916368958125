"""
What is public stands in a list, so that a change of it is seen.
"""

from .surface import LIST, surface


WRITE = "run `python -m tests.release.surface`, look at the difference, and tell users of it: docs/operate.md says how"


def test_what_is_public_is_what_the_list_says() -> None:
    listed, found = LIST.read_text().splitlines(), surface()
    gone = [line for line in listed if line not in set(found)]
    new = [line for line in found if line not in set(listed)]
    assert not gone, f"gone or changed, a break for users: {WRITE}"
    assert not new, f"new: {WRITE}"
    assert found == listed
