"""
The settings of the site for Sphinx, and the pages of the reference, made of the library itself. `python3 dev.py docs` builds it.
"""

import os
import subprocess
import sys

from pathlib import Path
from typing import Any

import typer

from guardrails import Policy, __version__
from guardrails.cli import app as commands
from guardrails.cli.explain import explanations


REFERENCE = Path(__file__).parent / "reference"
project = "toolcall-guardrails"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
include_patterns = ["docs/**.md", "examples/README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
root_doc = "docs/index"
default_role = "code"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "imported-members": True, "member-order": "alphabetical"}
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["static/index.html"]
html_copy_source = html_show_sphinx = html_use_index = False


def settings() -> str:
    """
    All keys of a policy file, from its JSON Schema.
    """
    schema = Policy.schema()
    text = "# Settings of a policy file\n\nThe pages of the guards have defaults and examples.\n"
    for name, part in {"The file": schema, **schema["$defs"]}.items():
        rows = ""
        for key, of in part.get("properties", {}).items():
            rows += f"| `{key}` | {kind(of)} | {' '.join(of.get('description', '').split())} |\n"
        text += f"\n## {name}\n\n{part.get('description', '')}\n\n| key | value | meaning |\n|---|---|---|\n{rows}"
    return text


def kind(of: dict[str, Any]) -> str:
    """
    The values that a piece of the schema allows, in a few words.
    """
    if "anyOf" in of:
        return " or ".join(dict.fromkeys(kind(one) for one in of["anyOf"]))
    if "$ref" in of:
        name = of["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in of:
        return " or ".join(f"`{value}`" for value in of["enum"])
    return "a duration" if "pattern" in of else str(of.get("type", "any value"))


def codes() -> str:
    """
    All codes, kinds of failures and statuses, as `guardrails explain` has them.
    """
    rows = ""
    for one in explanations().values():
        rows += f"| `{one['code']}` | {one['means']} | [page](..{one['docs'].removeprefix('docs')}) |\n"
    return f"# Codes\n\n`guardrails explain CODE` says more.\n\n| code | meaning | more |\n|---|---|---|\n{rows}"


def helps(command: Any, words: tuple[str, ...] = ("guardrails",)) -> str:
    """
    The help of *command*, and of the commands below it.
    """
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    run = [sys.executable, "-m", *words, "--help"]
    said = subprocess.run(run, capture_output=True, text=True, env=environment, check=True).stdout
    below = command.list_commands(None) if hasattr(command, "list_commands") else ()
    text = f"\n## {' '.join(words)}\n\n```text\n{said}```\n"
    return text + "".join(helps(command.get_command(None, name), (*words, name)) for name in below)


REFERENCE.mkdir(exist_ok=True)
for page, text in {
    "settings": settings(),
    "codes": codes(),
    "commands": f"# Commands\n{helps(typer.main.get_command(commands))}",
    "python": "# Python\n\n```{eval-rst}\n.. automodule:: guardrails\n```\n",
}.items():
    (REFERENCE / f"{page}.md").write_text(text, encoding="utf-8")
