"""
The pages of `docs/mcp/`, one a client, from what `guardrails mcp snippet` prints.

    python -m tests.mcp.proxy.pages --write
"""

import sys

from pathlib import Path
from typing import Final

from guardrails.mcp.proxy.snippets import CLIENTS, snippet


FOLDER: Final = Path(__file__).parents[3] / "docs/mcp"
COMMAND: Final = ("npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/you/notes")
RECORDS: Final = "/home/you/guardrails.jsonl"
PYTHON: Final = "/home/you/venv/bin/python"
PROMPT: Final = "Read todo.txt with the filesystem tools, four times, one call each."
_SHELLS: Final = {
    "claude-code": "claude --allowedTools mcp__filesystem -p",
    "codex": "codex exec --skip-git-repo-check",
    "gemini": "gemini --approval-mode yolo -p",
}
"""Clients that take a prompt on the command line; nobody is there whom they could ask for approval."""


def page(client: str) -> str:
    """
    The page of *client*.
    """
    kind = CLIENTS[client]
    text = snippet(client, COMMAND, [f"--records={RECORDS}"]).replace(sys.executable, PYTHON)
    command = f"guardrails mcp snippet {client} --records {RECORDS} -- {' '.join(COMMAND)}"
    # A client says which folder it works in, and this server then offers that one only.
    ask = f"In `{COMMAND[-1]}`: `{_SHELLS[client]} '{PROMPT}'`" if client in _SHELLS else f"Ask it: *{PROMPT}*"
    return f"""# {kind.title}

```sh
{command}
```

prints what starts that server behind the guards:

```{"toml" if kind.toml else "json"}
{text}```

Put it into {kind.where}. Other entries stay: add this one. {kind.then}

**Watch it stop a loop.** {ask}
The first look brings the file. A repeat that can bring nothing new is refused: the model reads why, and uses the result that it has.

**Read the report.** `guardrails report {RECORDS}`

Options, and what passes through untouched: [MCP proxy](README.md).
"""


def pages() -> dict[Path, str]:
    """
    All pages, by their files.
    """
    return {FOLDER / f"{client}.md": page(client) for client in CLIENTS}


if __name__ == "__main__":
    if "--write" in sys.argv:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
    else:
        print(*pages().values(), sep="\n")  # noqa: T201
