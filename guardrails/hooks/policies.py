"""
The policy of a hook. Each event is a process, so that the settings of a policy that was found to be valid are kept beside the states of
sessions: they are read without YAML, and hold on while the file cannot be used.
"""

import json
import os

from contextlib import suppress
from typing import Any, NamedTuple

from guardrails.core.guards import kinds_of
from guardrails.core.text.path_text import within
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit
from guardrails.core.values.version import __version__
from guardrails.policy.check import policy_type
from guardrails.policy.policy import Policy
from guardrails.policy.reload import digest, stamp_of

from .options import Options


Settings = dict[str, Any]


class Rules(NamedTuple):
    """
    The settings that *options* name, as a file has them; None: there are none that can be used. It is *wrong* why they are not what the options
    name now.
    """

    options: Options
    settings: Settings | None
    files: tuple[str, ...] = ()
    wrong: str = ""

    @classmethod
    def of(cls, options: Options) -> "Rules":
        """
        Returns the settings as they are kept, or read anew if a file has changed. If they cannot be used, the last ones hold that could.
        """
        place = f"{options.state_file}.policy-{digest(options.policy.encode())[:12]}.json"
        kept = _kept(place)
        files = kept.get("files", {})
        if not options.wrong and files and all(tuple(stamp) == stamp_of(path) for path, stamp in files.items()):
            return cls(options, kept["settings"], tuple(files))
        try:
            made = _read(options)
        except PolicyError as error:
            return cls(options, kept.get("settings"), tuple(files), str(error))
        _keep(place, made)
        return cls(options, made["settings"], tuple(made["files"]))

    def policy(self, project: str, cwd: str) -> Policy:
        """
        Returns the policy for an agent that is in the folder *cwd* of a *project*. Raises PolicyError if there is none.
        """
        if self.settings is None:
            raise PolicyError([self.wrong])
        arguments, faults = fit(policy_type(kinds_of(())), _placed(self.settings, project, cwd))
        if faults:
            raise PolicyError([fault.sentence("") for fault in faults])
        mode = {"mode": "observe"} if self.options.observe else {}
        return Policy(name=self.options.policy, **{"envelope": "quiet", **arguments, **mode})

    def is_within(self, project: str) -> bool:
        """
        Returns whether one of the files is in *project*, where the agent may change it.
        """
        return any(within(os.path.realpath(path), os.path.realpath(project)) for path in self.files)


def _read(options: Options) -> Settings:
    from guardrails.policy.document import Document
    from guardrails.policy.file import plain

    if options.wrong:
        raise PolicyError([options.wrong])
    document = Document(options.policy)
    Policy(**document.arguments())
    stamps = {path: content.stamp for path, content in document.contents().items()}
    return {"version": __version__, "files": stamps, "settings": plain(document.root)}


def _kept(place: str) -> Settings:
    with suppress(OSError, ValueError):
        with open(place, "rb") as file:  # noqa: PTH123
            kept: Settings = json.load(file)
        if kept["version"] == __version__:
            return kept
    return {}


def _keep(place: str, made: Settings) -> None:
    new = f"{place}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120  pathlib takes 5 ms
        with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(made, file)
        os.replace(new, place)  # noqa: PTH105


def _placed(settings: Settings, project: str, cwd: str) -> Settings:
    """
    Returns *settings* whose relative workspaces are in *project*. Relative paths of a call are taken from where the agent is, unless it has gone out of
    the project; all of the project is open to it.
    """
    here = cwd if within(os.path.realpath(cwd), os.path.realpath(project)) else project

    def placed(holder: Settings, default: str | None) -> Settings:
        own = holder.get("workspace")
        root = own.get("root", default) if isinstance(own, dict) else None
        if own is None or root is None or os.path.isabs(root):  # noqa: PTH117
            return holder
        also = [*own.get("also", ()), os.path.normpath(os.path.join(project, root))]  # noqa: PTH118
        return {**holder, "workspace": {**own, "root": os.path.normpath(os.path.join(here, root)), "also": also}}  # noqa: PTH118

    rules = [placed(rule, None) for rule in settings.get("tools") or ()]
    return placed({**settings, "tools": rules}, ".")
