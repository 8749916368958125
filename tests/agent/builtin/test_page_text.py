"""
The text of HTML pages, however broken.
"""

import pytest

from guardrails.agent.builtin.page_text import page_text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title> A\n b </title><p>x</p>", ("A b", "x")),
        ("<p>a<script>b</script>c", ("", "ac")),
        ("<style>x</style><script>y", ("", "")),
        ("a&lt;b&#x20;c &amp d", ("", "a<b c & d")),
        ("<ul><li>a<li>b</ul>", ("", "a\nb")),
        ("<head><meta x></head><body>a", ("", "a")),
        ("<head>no end<body>a", ("", "a")),
        ("<!-- <p>x</p> -->y", ("", "y")),
        ("</p></div><<>>< a", ("", "<<>>< a")),
        ("a\n\n\n\n\n  b", ("", "a\n\nb")),
        ("", ("", "")),
    ],
)
def test_text_is_what_a_reader_sees(html: str, expected: tuple[str, str]) -> None:
    assert page_text(html) == expected


def test_deep_nesting_is_read() -> None:
    assert page_text("<div>" * 50_000 + "x") == ("", "x")
