"""
A coding CLI behind the guards: what Claude Code tells `guardrails hook` of each call, and what it is answered.

`guardrails hook install claude` sets this up. Here the events of a stuck agent are sent by hand, into a folder that is removed.
"""

import json
import os
import subprocess
import sys
import tempfile

from pathlib import Path
from typing import Any


def told(event: str, n: int, **more: Any) -> dict[str, Any]:
    """
    An event as the client sends it.
    """
    call = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_use_id": f"toolu_{n}"}
    return {"session_id": "s-1", "cwd": "/", "hook_event_name": event, "permission_mode": "default", **call, **more}


def hook(home: Path, event: dict[str, Any]) -> dict[str, Any]:
    """
    The answer of the hook to one event: a JSON object. `{}` says that it has nothing to say.
    """
    places = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
    environment = {**os.environ, **dict.fromkeys(places, str(home))}
    command = [sys.executable, "-m", "guardrails", "hook", "--client", "claude", "--policy", "default"]
    done = subprocess.run(command, input=json.dumps(event).encode(), capture_output=True, check=True, env=environment)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n in range(4):
            said = hook(Path(folder), told("PreToolUse", n)).get("hookSpecificOutput", {})
            if said.get("permissionDecision") == "deny":
                print(n, "refused:", said["permissionDecisionReason"].partition("\n")[0])
                continue
            print(n, "the client runs it")
            output = {"stdout": "2 failed", "stderr": "", "interrupted": False}
            hook(Path(folder), told("PostToolUse", n, tool_response=output))


if __name__ == "__main__":
    main()
