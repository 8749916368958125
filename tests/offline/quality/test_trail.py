"""
What is remembered of a session.
"""

from guardrails.offline.quality.counting import Done, Trail


def done(sig: int | None, tool: str = "a") -> Done:
    return Done(tool, sig, 1, None, 0, changes=True)


def test_the_latest_call_of_a_signature_is_found_within_twenty() -> None:
    trail = Trail()
    for sig in (7, 8, 7, None, 9):
        trail.ran(done(sig), kept=True)
    assert trail.latest(7) == 2
    assert trail.latest(5) is None
    assert trail.latest(None) is None, "a call that cannot be signed is never a repeat"
    for sig in range(100, 118):
        trail.ran(done(sig), kept=False)
    assert trail.latest(7) is None
    assert (len(trail.done), len(trail.kept)) == (20, 5)


def test_a_correction_is_the_next_call_with_other_arguments_and_counts_once() -> None:
    trail = Trail(number=1)
    trail.went_wrong("a", 7)
    trail.number = 2
    assert not trail.correction("b", 8)
    assert trail.correction("a", 8)
    assert not trail.correction("a", 9)


def test_the_same_arguments_or_a_late_call_correct_nothing() -> None:
    for number, sig in ((2, 7), (7, 8)):
        trail = Trail(number=1)
        trail.went_wrong("a", 7)
        trail.number = number
        assert not trail.correction("a", sig)


def test_open_corrections_are_bounded() -> None:
    trail = Trail()
    for n in range(50):
        trail.went_wrong(f"t{n}", n)
    assert list(trail.wrong) == [f"t{n}" for n in range(30, 50)]
