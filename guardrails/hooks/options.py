"""
The options of the command `guardrails hook`, and the policy that they name.
"""

import json
import os

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from xxhash import xxh3_128_hexdigest as digest

from guardrails.core.guards import kinds_of
from guardrails.core.text.path_text import within
from guardrails.core.values.errors import PolicyError
from guardrails.core.values.schema import fit
from guardrails.core.values.version import __version__
from guardrails.policy.check import policy_type
from guardrails.policy.policy import Policy
from guardrails.policy.reload import is_name, stamp_of
from guardrails.stores.places import is_url, shown_place, state_folder, whole_place, write_whole

from .clients import CLIENTS
from .results import mapping


Settings = dict[str, Any]
_VALUES: Final = ("client", "policy", "store", "records", "user", "tenant")


class Options(NamedTuple):
    """
    The options by which events are answered. Paths are whole, so that they mean the same in every folder.
    """

    client: str | None = None
    """Who asks, of `CLIENTS`; None: seen by the event."""
    policy: str = "default"
    """A shipped name, or the path of a file."""
    store: str | None = None
    """The file of the sessions' states, or the URL of a server; None: `hooks.db` in the folder of the user's states."""
    records: str | None = None
    """A file of JSON lines; None: no records, or with *observe* those beside the store."""
    user: str | None = None
    tenant: str | None = None
    """Whose session it is, where the policy limits users or tenants."""
    observe: bool = False
    """Decide and record, and say nothing."""
    wrong: str | None = None
    """Why the words are no options of ours. Such options are as good as a policy that cannot be used."""

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """
        The options of the *words* of a command line.
        """
        made: dict[str, Any] = {}
        rest = iter(words)
        for word in rest:
            name, equals, value = word.removeprefix("--").partition("=")
            known = word.startswith("--") and name in _VALUES
            value = value if equals or not known else next(rest, "")
            if word == "--observe":
                made["observe"] = True
            elif known and value and (name != "client" or value in CLIENTS):
                made[name] = value
            else:
                made.setdefault("wrong", f"unknown option, or one without a value that it may have: `{word}`")
        for name in made.keys() & {"policy", "store", "records"}:
            if name != "policy" or not is_name(made[name]):
                made[name] = whole_place(made[name])
        return cls(**made)

    def words(self) -> list[str]:
        """
        The words of a command line that say these options.
        """
        given = [(name, getattr(self, name)) for name in _VALUES]
        return [f"--{name}={value}" for name, value in given if value is not None] + ["--observe"] * self.observe

    def __repr__(self) -> str:
        return f"Options({' '.join(map(shown_place, self.words()))})"

    @property
    def store_path(self) -> str:
        """
        The file of the states, absolute, or the URL of their server.
        """
        return self.store or os.path.join(state_folder(), "hooks.db")

    @property
    def records_path(self) -> str | None:
        """
        The file of the records, absolute. Returns None if there are none.
        """
        return self.records or (f"{self.state_file.removesuffix('.db')}.jsonl" if self.observe else None)

    @property
    def state_file(self) -> str:
        """
        The file of the states, also where a server keeps them: what this machine keeps by itself is beside it.
        """
        return Options().store_path if is_url(self.store_path) else self.store_path


# The policy. Each event is a process, so that the settings of a policy that was found to be valid are kept beside the states of sessions: they
# are read without YAML, and hold on while the file cannot be used.


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
        cache: Settings = {}
        with suppress(OSError, ValueError, RecursionError), open(place, "rb") as file:
            cache = dict(mapping(json.load(file)))
        cache = cache if cache.get("version") == __version__ else {}
        files = cache.get("files", {})
        if not options.wrong and files and all(tuple(stamp) == stamp_of(path) for path, stamp in files.items()):
            return cls(options, cache["settings"], tuple(files))
        try:
            made = _read(options)
        except PolicyError as error:
            return cls(options, cache.get("settings"), tuple(files), str(error))
        with suppress(OSError):
            os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
            write_whole(place, json.dumps(made).encode(), 0o600)
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
    from guardrails.policy.file import Document, plain

    if options.wrong:
        raise PolicyError([options.wrong])
    document = Document(options.policy)
    Policy(**document.arguments())
    return {"version": __version__, "files": document.contents()[0], "settings": plain(document.root)}


def _placed(settings: Settings, project: str, cwd: str) -> Settings:
    """
    Returns *settings* whose relative workspaces are in *project*. Relative paths of a call are taken from where the agent is, unless it has gone out of
    the project; all of the project is open to it.
    """
    here = cwd if within(os.path.realpath(cwd), os.path.realpath(project)) else project

    def placed(holder: Settings, default: str | None) -> Settings:
        own = holder.get("workspace")
        root = own.get("root", default) if isinstance(own, dict) else None
        if own is None or root is None or os.path.isabs(root):
            return holder
        also = [*own.get("also", ()), os.path.normpath(os.path.join(project, root))]
        return {**holder, "workspace": {**own, "root": os.path.normpath(os.path.join(here, root)), "also": also}}

    rules = [placed(rule, None) for rule in settings.get("tools") or ()]
    return placed({**settings, "tools": rules}, ".")
