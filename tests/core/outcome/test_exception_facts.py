"""
What an exception carries.
"""

import subprocess

from guardrails.core.outcome.exception_facts import LINKS, TEXT_CHARS, attribute, chain, headers_of, text_of


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_speaks_through_its_text() -> None:
    assert text_of(ValueError("no")) == "no"
    assert text_of(ValueError()) == ""
    assert text_of(Mute()) == ""


def test_a_failed_command_speaks_through_what_it_wrote() -> None:
    failed = subprocess.CalledProcessError(2, ["ls"], output=b"out", stderr=b"ls: no such file\n")

    assert text_of(failed).endswith("returned non-zero exit status 2.\nls: no such file")
    assert text_of(subprocess.CalledProcessError(2, ["ls"], output="out")).endswith("\nout")


def test_an_enormous_text_keeps_its_two_ends() -> None:
    text = text_of(ValueError("a" * 10**6 + "b"))

    assert len(text) == TEXT_CHARS
    assert (text[0], text[-1]) == ("a", "b")


def test_an_attribute_that_fails_is_none() -> None:
    class Broken:
        @property
        def code(self) -> int:
            raise OSError

    assert attribute(Broken(), "code") is None
    assert attribute(Broken(), "absent") is None


def test_a_chain_begins_with_the_exception_and_ends() -> None:
    first, last = ValueError(), KeyError()
    first.__cause__ = first.__context__ = last

    assert list(chain(first)) == [first, last]

    for _ in range(100):
        outer = RuntimeError()
        outer.__context__ = last
        last = outer  # type: ignore[assignment]
    assert len(list(chain(last))) == LINKS
    assert list(chain(last, context=False)) == [last]


def test_header_names_are_in_lowercase() -> None:
    exc = Exception()
    exc.headers = {"Retry-After": 3}  # type: ignore[attr-defined]

    assert headers_of(exc) == {"retry-after": "3"}
    assert headers_of(Exception()) == {}
