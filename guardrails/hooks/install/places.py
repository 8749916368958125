"""
The clients: where their settings are, which events they tell, and what switches hooks off.
"""

import os

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


TIMEOUT: Final = 30
"""Seconds until a client goes on without an answer. An answer takes about 0.05; a store that others lock, up to 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """
    A coding CLI with hooks.
    """

    name: str
    title: str
    events: tuple[str, ...]
    home: str
    """The environment variable that moves its folder."""
    home_is_folder: bool = True
    """The variable names the folder itself, not what it is in."""
    folder: str
    file: str
    milliseconds: bool = False
    """Its time-outs are in milliseconds, not seconds."""

    def places(self) -> tuple[str, ...]:
        """
        The names of its places, from the person's own to the folder's.
        """
        return ("user", "project", "local") if self.name == "claude" else ("user", "project")

    def user_folder(self) -> Path:
        """
        The folder of a person's own settings.
        """
        moved = os.environ.get(self.home)
        if moved and self.home_is_folder:
            return Path(moved).expanduser()
        return (Path(moved) if moved else Path.home()) / self.folder

    def path(self, place: str, project: Path) -> Path:
        """
        The settings file of *place*; *project* is the folder in which the client is started.
        """
        if place == "user":
            return self.user_folder() / self.file
        return project / self.folder / ("settings.local.json" if place == "local" else self.file)

    def handler(self, command: str, *, windows: bool = False) -> dict[str, Any]:
        """
        Returns the entry in the settings for each event.
        """
        said: dict[str, Any] = {"type": "command", "command": command}
        said["timeout"] = TIMEOUT * 1_000 if self.milliseconds else TIMEOUT
        if self.name == "claude" and windows:
            said["shell"] = "powershell"
        if self.name == "gemini":
            # Under this name `/hooks disable` and the setting `hooksConfig.disabled` know it.
            said["name"] = "guardrails"
        return said


CLAUDE: Final = Client(
    name="claude",
    title="Claude Code",
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStart",
        "SubagentStop",
        "Stop",
    ),
    home="CLAUDE_CONFIG_DIR",
    folder=".claude",
    file="settings.json",
)
CODEX: Final = Client(
    name="codex",
    title="Codex",
    events=(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "SubagentStart",
        "SubagentStop",
        "Stop",
    ),
    home="CODEX_HOME",
    folder=".codex",
    file="hooks.json",
)
GEMINI: Final = Client(
    name="gemini",
    title="Gemini CLI",
    events=(
        "SessionStart",
        "BeforeAgent",
        "BeforeToolSelection",
        "AfterModel",
        "BeforeTool",
        "AfterTool",
        "AfterAgent",
    ),
    home="GEMINI_CLI_HOME",
    home_is_folder=False,
    folder=".gemini",
    file="settings.json",
    milliseconds=True,
)
CLIENTS: Final = {client.name: client for client in (CLAUDE, CODEX, GEMINI)}
