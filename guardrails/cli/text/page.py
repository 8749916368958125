"""
The page that `--html` writes: one static file that draws the JSON of a command.
"""

import base64
import hashlib
import json

from pathlib import Path
from typing import Any, Final, Literal

from .outputs import tell_of_written, write_whole


FILE: Final = Path(__file__).with_suffix(".html")


def page(command: Literal["report", "replay", "profile"], data: Any) -> str:
    """
    Returns the page of *data*, which *command* prints with `--json`.
    """
    head, _, rest = FILE.read_text(encoding="utf-8").partition("DATA")
    script = rest.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # ASCII without `<`: no text of it ends the element that holds it.
    said = json.dumps({"command": command, "data": data}, default=str).replace("<", "\\u003c")
    return head.replace("SCRIPT", f"sha256-{digest}") + said + rest


def write_page(path: Path, command: Literal["report", "replay", "profile"], data: Any, what: str) -> None:
    """
    Write it to *path*, for its owner only, and say that it holds *what*.
    """
    write_whole(path, page(command, data), 0o600)
    tell_of_written(path, f"A page of {what}")
