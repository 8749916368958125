"""
Files with a second name: one outside the workspace may be a key of its owner that a hard link brought in.

A handle does not say where the other names are, so they are looked for, in bounded time. A file that package managers
and version control link from their stores is no file of a person.
"""

import os
import stat

from typing import Final

from .rooted import Place, open_folder


STORES: Final = frozenset(
    {"node_modules", "site-packages", "dist-packages", ".venv", "venv", "conda-meta", ".pnpm-store", ".yarn"}
    | {".git", ".jj", ".hg"}
)
"""Folders whose files uv, pnpm, conda, `git clone` and the like link from a store of their own."""
MAX_LOOKED_AT: Final = 20_000
"""Entries of the workspace: some 30 ms."""
MAX_DEPTH: Final = 32


def has_names_elsewhere(handle: int, place: Place, workspace: int) -> bool:
    """
    Returns whether the open file at *place* has names that are not found in the folder *workspace* (its handle).
    """
    found = os.fstat(handle)
    if found.st_nlink <= 1 or not STORES.isdisjoint(place.above):
        return False
    if any(_is_of_conda(place.above[:depth], workspace) for depth in range(1, len(place.above) + 1)):
        return False
    search = _Search(found)
    search.look_into(workspace, 0)
    return search.names < found.st_nlink


def _is_of_conda(folders: tuple[str, ...], workspace: int) -> bool:
    # An environment has files of the store in all of its folders.
    try:
        os.stat("/".join((*folders, "conda-meta", "history")), dir_fd=workspace, follow_symlinks=False)
    except OSError:
        return False
    return True


class _Search:
    def __init__(self, wanted: os.stat_result) -> None:
        self.names = 0
        self._wanted = wanted
        self._left = MAX_LOOKED_AT

    def look_into(self, folder: int, depth: int) -> None:
        below: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self._left -= 1
                if self._left < 0 or self.names >= self._wanted.st_nlink:
                    return
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in STORES:
                        below.append(entry.name)
                elif entry.inode() == self._wanted.st_ino:
                    self.names += self._is_it(entry.name, folder)
        for name in below if depth < MAX_DEPTH else ():
            if self._left < 0 or self.names >= self._wanted.st_nlink:
                return
            try:
                handle = open_folder(Place(folder, name, name))
            except OSError:
                continue
            try:
                self.look_into(handle, depth + 1)
            finally:
                os.close(handle)

    def _is_it(self, name: str, folder: int) -> bool:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and os.path.samestat(found, self._wanted)
