"""
A dict that forgets its oldest entries.
"""

import pytest

from guardrails.offline.readers import recent
from guardrails.offline.readers.recent import Recent, Seen


def test_a_new_key_takes_the_place_of_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_KEPT", 3)
    kept: Recent[str, int] = Recent()
    for at, key in enumerate("abacd"):
        kept[key] = at
    assert kept == {"b": 1, "c": 3, "d": 4}


def test_a_key_is_new_once_and_none_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MAX_KEPT", 2)
    seen: Seen[str] = Seen()
    assert [seen.add(key) for key in ("a", "a", None, None, "b", "a", "c", "a")] == [
        *(True, False, True, True),
        *(True, False, True, True),
    ]
