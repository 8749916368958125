"""
Policies by way of their compiled form, which is made anew whenever a file that it was made of has changed.
"""

import os

from os import PathLike
from typing import Any

from guardrails.core.guards import GUARDS
from guardrails.core.values.types import Mode
from guardrails.core.values.version import __version__
from guardrails.policy.policy import Policy
from guardrails.policy.settings import KEYS, settings
from guardrails.stores.folders import cache_folder

from .file import read, write
from .source import digest, digests, whole


def load_compiled(
    source: str | PathLike[str], *, cache: str | PathLike[str] | None = None, mode: Mode | None = None
) -> Policy:
    """
    Returns the same as `Policy.load(source)`, read from the compiled form in the folder *cache* if it is there and
    still true.

    Else the policy is loaded and its compiled form is written there. A folder that cannot be written costs time, no
    more. The folder *cache* is the user's own unless given, and *mode* is the mode of the file. Raises PolicyError with
    every mistake.
    """
    own: Any = {"name": str(source)} if mode is None else {"name": str(source), "mode": mode}
    path = _path(source, cache)
    kept = _kept(path)
    if kept is not None:
        try:
            return _made(settings(kept["data"]) | own)
        except Exception:  # noqa: BLE001, S110  other code has written it: compiled anew, with all checks
            pass
    return Policy(**(_compile(source, path)[1] | own))


def sources_of(source: str | PathLike[str], *, cache: str | PathLike[str] | None = None) -> dict[str, str]:
    """
    Returns the digest of each file that the policy *source* is made of, by whole path. Raises PolicyError.
    """
    path = _path(source, cache)
    kept = _kept(path)
    return kept["sources"] if kept is not None else _compile(source, path)[0]


def _path(source: str | PathLike[str], cache: str | PathLike[str] | None) -> str:
    """
    Returns the place of the compiled form of *source*: of one library, in one place, and one name or whole path.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    said = "\0".join((__version__, package, whole(os.fspath(source))))
    folder = cache_folder() if cache is None else os.fspath(cache)
    return os.path.join(folder, "policies", f"{digest(os.fsencode(said))}.json")  # noqa: PTH118


def _kept(path: str) -> Any:
    """
    Returns the content of the compiled form in *path*. Returns None if there is none that is whole, our own and still
    true.
    """
    kept = read(path)
    if not isinstance(kept, dict) or kept.get("version") != __version__:
        return None
    known = KEYS.union(cls.name for cls in GUARDS)
    # Other code may call itself by the same version: what it named otherwise would be left out in silence.
    if not isinstance(kept.get("data"), dict) or not kept["data"].keys() <= known:
        return None
    return kept if digests(kept["sources"]) == kept["sources"] else None


def _made(said: dict[str, Any]) -> Policy:
    """
    The policy of checked settings; those of scopes are checked again, as they are put together there.
    """
    return Policy(**said) if said["scopes"] else Policy.of_checked(**{k: v for k, v in said.items() if k != "scopes"})


def _compile(source: str | PathLike[str], path: str) -> tuple[dict[str, str], dict[str, Any]]:
    """
    The digests of the files that *source* is made of and the arguments of its policy; the compiled form is in *path* then.
    """
    from guardrails.policy.loading import checked_document

    document, data, said = checked_document(source)
    paths = [os.path.abspath(each.name) for each in document.sources]  # noqa: PTH100
    sources = digests(paths)
    # Read twice: what was changed in between must not stand for what was read.
    if checked_document(source)[1] == data and digests(paths) == sources:
        write(path, {"version": __version__, "sources": sources, "data": data}, lambda data: _same(said, data))
    return sources, said


def _same(said: dict[str, Any], data: Any) -> bool:
    """
    Whether *data*, as it comes out of a file, makes the policy that *said* makes.
    """
    given = settings(data)
    loaded, made = Policy(**said), _made({"name": "policy", **given})
    names = ("guards", "rules", "mode", "on_error", "merged", "left_out", "messages", "kinds")
    return given == said and all(getattr(loaded.chain, name) == getattr(made.chain, name) for name in names)
