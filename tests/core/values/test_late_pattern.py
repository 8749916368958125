"""
Patterns that are compiled when they are first used.
"""

import importlib
import pkgutil
import re

import pytest

import guardrails

from guardrails.core.values.late_pattern import _Uncompiled, pattern


WORD = pattern(r"[a-z]+", re.IGNORECASE)
ALIAS = WORD
BROKEN = pattern("(")


def test_the_first_use_puts_the_pattern_itself_in_its_place() -> None:
    stand_in = WORD
    assert isinstance(stand_in, _Uncompiled)
    assert stand_in.pattern == "[a-z]+"
    assert stand_in.flags == re.IGNORECASE
    assert isinstance(WORD, _Uncompiled)
    found = WORD.fullmatch("Ab")
    assert found is not None
    assert isinstance(WORD, re.Pattern)
    assert ALIAS is WORD
    assert stand_in.search("b") is not None


def test_a_mistake_in_a_pattern_shows_when_it_is_used() -> None:
    with pytest.raises(re.error):
        BROKEN.match("a")


def test_every_pattern_of_the_library_is_a_valid_one() -> None:
    seen = 0
    for module in pkgutil.walk_packages(guardrails.__path__, "guardrails."):
        if module.name.startswith(("guardrails.core.", "guardrails.policy.")):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, _Uncompiled | re.Pattern):
                    seen += 1
                    re.compile(value.pattern, value.flags if isinstance(value, _Uncompiled) else 0)
    assert seen > 100
