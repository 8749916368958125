"""
The settings of a client that keep it from asking a hook which is installed.
"""

import json
import os
import sys
import tomllib

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from .places import Client
from .settings import Entry, read


NAME: Final = "guardrails"
_MANAGED: Final = {
    "darwin": "/Library/Application Support/ClaudeCode",
    "win32": r"C:\Program Files\ClaudeCode",
}


def switched_off(client: Client, project: Path, command: str) -> list[str]:
    """
    Why *client* asks no hooks, or not this *command*, in the folder *project*.
    """
    if client.name == "claude":
        return list(_claude(client, project))
    return list(_codex(client, project) if client.name == "codex" else _gemini(client, project, command))


def _claude(client: Client, project: Path) -> Iterator[str]:
    for place in client.places():
        path = client.path(place, project)
        if _settings(path).get("disableAllHooks") is True:
            yield f"`disableAllHooks` in {path}"
    managed = Path(_MANAGED.get(sys.platform, "/etc/claude-code")) / "managed-settings.json"
    said = _settings(managed)
    for key in ("disableAllHooks", "allowManagedHooksOnly"):
        if said.get(key) is True:
            yield f"`{key}` in {managed}"


def _codex(client: Client, project: Path) -> Iterator[str]:
    for path in (client.user_folder() / "config.toml", project / client.folder / "config.toml"):
        features = _toml(path).get("features")
        for key in ("hooks", "codex_hooks"):
            if isinstance(features, Mapping) and features.get(key) is False:
                yield f"`features.{key}` is false in {path}"


def _gemini(client: Client, project: Path, command: str) -> Iterator[str]:
    for place in client.places():
        path = client.path(place, project)
        said = _settings(path).get("hooksConfig")
        if not isinstance(said, Mapping):
            continue
        if said.get("enabled") is False:
            yield f"`hooksConfig.enabled` is false in {path}"
        disabled = said.get("disabled")
        if isinstance(disabled, list) and (NAME in disabled or command in disabled):
            yield f"`hooksConfig.disabled` names it in {path}"
    if _refused_by_gemini(client, project):
        yield f"Gemini CLI does not trust {project}, where it runs no hooks: `/permissions` in it"


def _refused_by_gemini(client: Client, project: Path) -> bool:
    """
    A person has said that the folder is not to be trusted. Gemini CLI asks about a folder that nobody has judged when
    it starts.
    """
    said = os.environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    if said in ("true", "false"):
        return said == "false"
    security = _settings(client.path("user", project)).get("security")
    trust = security.get("folderTrust") if isinstance(security, Mapping) else None
    if isinstance(trust, Mapping) and trust.get("enabled") is False:
        return False
    longest, level = "", ""
    for folder, given in _settings(client.user_folder() / "trustedFolders.json").items():
        root = Path(folder).parent if given == "TRUST_PARENT" else Path(folder)
        if len(folder) > len(longest) and project.resolve().is_relative_to(root.resolve()):
            longest, level = folder, str(given)
    return level == "DO_NOT_TRUST"


def untrusted(client: Client, place: str, path: Path, ours: Sequence[Entry], project: Path) -> list[str]:
    """
    Why Codex skips our entries in *path*: nobody has trusted them, or the project they are in.
    """
    config = _toml(client.user_folder() / "config.toml")
    said = []
    if place == "project" and not _trusted_project(config, project):
        said.append(f"Codex reads nothing of {path.parent}: the project is not trusted; start `codex` in it once")
    hooks = config.get("hooks")
    state = hooks.get("state") if isinstance(hooks, Mapping) else None
    known = state if isinstance(state, Mapping) else {}
    kept = {entry.event: _kept(known, path, entry) for entry in ours}
    for why, events in (
        ("not trusted, so that Codex skips it", [event for event, one in kept.items() if not one.get("trusted_hash")]),
        ("changed since it was trusted, so that Codex skips it", [e.event for e in ours if _changed(e, kept[e.event])]),
        ("switched off in `/hooks` of Codex", [event for event, one in kept.items() if one.get("enabled") is False]),
    ):
        if events:
            said.append(f"{why}: {', '.join(events)}; type `/hooks` in `codex` and look at it")
    return said


def _kept(state: Mapping[str, Any], path: Path, entry: Entry) -> Mapping[str, Any]:
    """
    Returns the state that Codex keeps of our *entry* in *path*, by its number in the list.
    """
    for file in (path.resolve(), path):
        said = state.get(f"{file}:{_snake(entry.event)}:{entry.group}:{entry.place}")
        if isinstance(said, Mapping):
            return said
    return {}


def _changed(entry: Entry, kept: Mapping[str, Any]) -> bool:
    trusted = kept.get("trusted_hash")
    return bool(trusted) and trusted != trust_hash(entry)


def trust_hash(entry: Entry) -> str:
    """
    Returns the hash that Codex keeps of an *entry* of ours that a person has trusted: its SHA-256 as JSON with sorted
    keys.
    """
    said: dict[str, Any] = {"event_name": _snake(entry.event), "hooks": [{"async": False, **entry.handler}]}
    if entry.matcher is not None:
        said["matcher"] = entry.matcher
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode(errors='surrogatepass')).hexdigest()}"


def _trusted_project(config: Mapping[str, Any], project: Path) -> bool:
    projects = config.get("projects")
    for folder in (project.resolve(), *project.resolve().parents):
        said = projects.get(str(folder)) if isinstance(projects, Mapping) else None
        if isinstance(said, Mapping) and said.get("trust_level") == "trusted":
            return True
    return False


def _snake(event: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in event).lstrip("_")


def _settings(path: Path) -> Mapping[str, Any]:
    try:
        return read(path).settings
    except OSError:
        return {}


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return {}
