"""
Parameter descriptions in the three common styles.
"""

import inspect

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from guardrails.core.arguments.typed import descriptions as parameter_descriptions
from tests.tables import table


GOOGLE = """
    Find hotels.

    Args:
        city (str, optional): Where to look:
            a city or a district.
        limit: At most so many.

            A second paragraph.
        *tags: Words.
        **more (dict[str, tuple(int)]): The rest.
        silent:

    Returns:
        list: not a parameter.
"""

NUMPY = """
    Find hotels.

    Parameters
    ----------
    city : str, optional
        Where to look:
        a city or a district.
    limit
        At most so many.

        A second paragraph.
    *tags : str
        Words.
    **more : dict
        The rest.
    silent : int

    Returns
    -------
    list : list
        Not a parameter.
"""

REST = """
    Find hotels.

    :param str city: Where to look:
        a city or a district.
    :param limit: At most so many.

        A second paragraph.
    :param \\*tags: Words.
    :keyword more: The rest.
    :param silent:
    :type city: str
    :returns: not a parameter.
"""


@table("docstring", [GOOGLE, NUMPY, REST])
@table("as_written", [str, inspect.cleandoc])
def test_each_style_gives_the_same_descriptions(docstring: str, as_written: Callable[[str], str]) -> None:
    found = parameter_descriptions(as_written(docstring))
    assert {name: found.get(name) for name in ("city", "limit", "tags", "more", "silent")} == {
        "city": "Where to look: a city or a district.",
        "limit": "At most so many. A second paragraph.",
        "tags": "Words.",
        "more": "The rest.",
        "silent": None,
    }


@given(st.text("Args:\n -*()param:xParameters", max_size=80))
def test_no_docstring_makes_it_raise(docstring: str) -> None:
    assert all(parameter_descriptions(docstring).values())
