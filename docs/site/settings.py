"""
The page of all settings of a policy file: names and types from the schema, meanings from the pages of the guards.
"""

import re

from typing import Any

from guardrails import Policy, Tool
from guardrails.core.guards import GUARDS

from .nav import DOCS, page_of
from .sources import fields


FILE = {
    "version": "The version of the file format. Every file names it.",
    "extends": "The policies that this one builds on: shipped names, or paths relative to this file.",
    "mode": "The mode of all guards that set none of their own.",
    "by_name": "The words of a tool's name tell looks from work where nothing is declared.",
    "stop": "The reason for which every call is refused, as long as the file has it.",
    "on_error": "The fate of a call if a guard itself fails: it is refused, or it runs.",
    "envelope": "The form of the text for the model: the result apart from what is said of it, or merged with it.",
    "fields": "The optional fields of the envelope that are written. All, if the key is left out.",
    "prices": "USD per million tokens, by the name of a model or a glob.",
    "messages": "Wordings of your own, by code.",
    "tools": "Rules for tools by name: what is declared of them, and settings of guards. The first match wins, key by key.",
    "scopes": "Guards that hold for all sessions of a user, a tenant or all together.",
}
"""The keys of a policy file beside its guards; the schema says their types only."""
UNITS = {"^[0-9]{1,15}(\\.[0-9]{1,9})?(ms|s|m|h|d)$": "seconds or a duration such as `30s`"}
ROW = r"^\| `{}` \| (.*?) \| (.*) \|$"


def settings() -> str:
    """
    The page, as Markdown.
    """
    schema = Policy.schema()
    kinds, keys = schema["$defs"], schema["properties"]
    text = "# Settings of a policy file\n\nAll keys that a file may have, from its JSON Schema: `guardrails policy schema` prints that.\n"
    text += "\n## The file\n\n| key | type | meaning |\n|---|---|---|\n"
    text += "".join(f"| `{key}` | {kind(keys[key], kinds)} | {FILE[key]} |\n" for key in keys if key in FILE)
    text += "\n## A rule of `tools`\n\nA rule declares this of the tools that match. Settings of guards may stand beside it.\n"
    text += "\n| key | type | meaning |\n|---|---|---|\n"
    says = {one.name: " ".join(one.says.split()) for one in fields(Tool)} | FILE
    says |= {"match": "A glob, or several, of names of tools."}
    text += "".join(
        f"| `{key}` | {kind(of, kinds)} | {cell(says.get(key, ''))} |\n"
        for key, of in kinds["ToolRule"]["properties"].items()
        if key not in {cls.name for cls in GUARDS} - {"retryable"}
    )
    for cls in GUARDS:
        text += guard(cls.name, kinds)
    return text


def guard(name: str, kinds: dict[str, Any]) -> str:
    """
    The part of the page about one guard.
    """
    own = kinds["".join(part.title() for part in name.split("_"))]
    place = page_of(name)
    file, _, section = place.partition("#")
    page = (DOCS / file).read_text(encoding="utf-8")
    page = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else page
    text = f"\n## {name}\n\n{own['description']}\n\n[Its section](../{place}) has examples.\n"
    text += "\n| setting | type | default | meaning |\n|---|---|---|---|\n"
    for key, of in own["properties"].items():
        if of.get("deprecated"):
            continue
        row = re.search(ROW.format(key), page, re.MULTILINE)
        default, meaning = (
            (row[1], row[2])
            if row
            else ("`enforce`", "`observe` changes nothing and records; `off` is as if it were not there.")
        )
        text += f"| `{key}` | {kind(of, kinds)} | {default} | {linked(meaning, file)} |\n"
    return text


def linked(meaning: str, file: str) -> str:
    """
    *meaning* with its links as they are from the reference: it stands on the page *file*.
    """

    def moved(link: re.Match[str]) -> str:
        target = f"{file}{link[1]}" if link[1].startswith("#") else f"guards/{link[1]}"
        return f"](../{target})".replace("guards/../", "").replace("guards/README.md", "guards/index.md")

    return re.sub(r"\]\((?!https?:)([^)]+)\)", moved, meaning)


def cell(text: str) -> str:
    """
    *text* in one cell of a table.
    """
    return text.replace("|", "\\|")


def kind(of: dict[str, Any], kinds: dict[str, Any]) -> str:
    """
    Returns in words which values a piece of the schema allows.
    """
    if "$ref" in of:
        named = of["$ref"].rpartition("/")[2]
        inner = kinds[named].get("properties", {})
        shown = [key for key, value in inner.items() if not value.get("deprecated")]
        return f"map: {', '.join(f'`{key}`' for key in shown)}" if len(shown) <= 6 else f"map, see {named}"
    if "anyOf" in of:
        told = [kind(one, kinds) for one in of["anyOf"]]
        return " or ".join(dict.fromkeys(one for one in told if one != "number" or UNITS["".join(UNITS)] not in told))
    if "enum" in of:
        return " or ".join(f"`{value}`" for value in of["enum"])
    if "const" in of:
        return f"`{of['const']}`"
    name = UNITS.get(of.get("pattern", "")) or {
        "null": "`null`",
        "integer": "whole number",
        "object": "map",
        "string": "text",
        "boolean": "`true` or `false`",
    }.get(of.get("type", ""), of.get("type", "any"))
    if of.get("type") == "array":
        return f"list of {kind(of.get('items', {}), kinds)}"
    if of.get("type") == "object" and isinstance(of.get("additionalProperties"), dict):
        return f"map of {kind(of['additionalProperties'], kinds)}"
    low, high = of.get("minimum"), of.get("maximum")
    if low is not None and high is not None:
        return f"{name}, {low:g} to {high:g}"
    return f"{name}, at least {low:g}" if low else name
