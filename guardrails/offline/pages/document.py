"""
The frame of an offline page: its head, which lets nothing be loaded, and the one script.
"""

from typing import Final

from .markup import Markup, tag
from .palette import css
from .script import DIGEST, SCRIPT
from .style import STYLE


POLICY: Final = f"default-src 'none'; style-src 'unsafe-inline'; script-src '{DIGEST}'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, *body: Markup, style: str = "") -> str:
    """
    The text of a page, to be written as UTF-8; *style* is what it has beyond the common style.
    """
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(STYLE + css() + style)),
    ]
    whole = tag("body", *body, tag("script", Markup(SCRIPT)))
    return f"<!doctype html>\n{tag('html', tag('head', *head), whole, lang='en')}\n"
