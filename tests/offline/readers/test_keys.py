"""
A set of numbers that forgets the oldest.
"""

from hypothesis import given
from hypothesis import strategies as st

from guardrails.offline.readers.keys import Keys


KEYS = st.lists(st.integers(1, 2**64 - 1) | st.integers(1, 40))


@given(KEYS)
def test_a_number_is_new_once(numbers: list[int]) -> None:
    keys, known = Keys(), set[int]()
    for number in numbers:
        assert keys.add(number) == (number not in known)
        known.add(number)


def test_a_table_that_grows_forgets_nothing() -> None:
    keys = Keys()
    numbers = [number * 0x9E3779B97F4A7C15 % 2**64 for number in range(1, 60_000)]
    assert all(map(keys.add, numbers))
    assert not any(map(keys.add, numbers))


def test_the_latest_are_remembered_and_the_oldest_forgotten() -> None:
    keys = Keys(most=100)
    for number in range(1, 251):
        keys.add(number)
    assert not any(keys.add(number) for number in range(151, 251))
    assert keys.add(1)


@given(KEYS, KEYS)
def test_what_was_packed_goes_on(before: list[int], after: list[int]) -> None:
    one, other = Keys(most=10), Keys(most=10)
    for number in before:
        one.add(number)
    other.add_bytes(*one.to_bytes())
    assert [one.add(number) for number in after] == [other.add(number) for number in after]
