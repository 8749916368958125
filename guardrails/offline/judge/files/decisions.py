"""
Writes the decision on each recorded call to a file of JSON lines.
"""

import json

from pathlib import Path
from shutil import copyfileobj
from typing import Any, Final, Self

import orjson

from guardrails.offline.judge.counting import Said
from guardrails.offline.readers import RecordedCall


BUFFER: Final = 1 << 20


class Decisions:
    """
    A new file *path*. With *kept* its first so many bytes stay, and new lines are written after them.

    Raises OSError if it cannot be written.
    """

    def __init__(self, path: Path, kept: int = 0) -> None:
        self._file = path.open("r+b" if kept else "wb", buffering=BUFFER)
        self._file.truncate(kept)
        self._file.seek(kept)

    def add(self, call: RecordedCall, said: Said) -> None:
        """
        One line; `run` stands in it if a record names the life of its session, `why` and `worked` where *said* has them.
        """
        data = {
            "source": call.source,
            "session_id": call.session_id,
            "call_index": call.call_index,
            "decision": said.decision,
            "code": said.code,
        }
        if call.run:
            data["run"] = call.run
        if said.why is not None:
            data |= {"why": said.why, "worked": said.worked}
        self._file.write(_line(data))

    def add_lines(self, path: Path) -> None:
        """
        The lines of another such file.
        """
        with path.open("rb") as lines:
            copyfileobj(lines, self._file, BUFFER)

    def flush(self) -> int:
        """
        Bring it all to the file; the bytes that it has.
        """
        self._file.flush()
        return self._file.tell()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _line(data: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(data, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # A lone surrogate in an id.
        return json.dumps(data).encode() + b"\n"
