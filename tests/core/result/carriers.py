"""
The carriers of a content: each is read like the content itself.
"""

import json

from collections.abc import Iterator
from dataclasses import make_dataclass
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import yaml


RESULTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("results.yaml").read_text())
"""What tools bring back, by what is read of it."""


def block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def carried(value: Any) -> Iterator[tuple[str, Any]]:
    """
    *value*, an object or a text, by the names of its carriers.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    yield "as it is", value
    yield "text", text
    yield "text with spaces", f"\n {text}\n"
    yield "a block", block(text)
    yield "blocks", [block(text)]
    yield "wire", {"content": [block(text)]}
    yield "wire with its flag", {"content": [block(text)], "isError": False, "_meta": {}}
    yield "an SDK's object", SimpleNamespace(content=[SimpleNamespace(type="text", text=text)], is_error=False)
    yield "the only text", {"result": text}
    yield "wire in text", json.dumps({"content": [block(text)], "isError": False})
    if isinstance(value, dict):
        yield "fenced", f"```json\n{text}\n```"
        yield "structured", {"content": [block("see there")], "structuredContent": value}
        yield "beside a remark", {"content": [block("This was found."), block(text)]}
        yield "a mapping", MappingProxyType(value)
        if value and all(str(name).isidentifier() and str(name) not in ("from", "None", "class") for name in value):
            yield "a dataclass", make_dataclass("Row", list(value))(*value.values())
