"""
The small world that each command finds: a workspace, what lies beside it, and programs that only write down how they ran.
"""

import os
import shutil
import stat

from pathlib import Path
from typing import Final


WORLD: Final = Path("/world")
WORKSPACE: Final = WORLD / "ws"
OUTSIDE: Final = WORLD / "outside"
LOG: Final = Path("/log")
TOKEN: Final = "canary-5c1e9a"
"""Stands in what lies outside of the workspace, in names and in texts, and in nothing else."""

BUILTINS: Final = ("[", "echo", "false", "kill", "printf", "pwd", "test", "true")
"""Programs that a shell has within itself too. bash can be told to start the programs, dash cannot."""
PROGRAMS: Final = (
    *BUILTINS,
    *(
        "a b",
        "awk",
        "cat",
        "cp",
        "cut",
        "diff",
        "env",
        "find",
        "git",
        "grep",
        "head",
        "if",
        "jq",
        "killed",
        "ls",
        "make",
    ),
    *(
        "mkdir",
        "mv",
        "node",
        "npm",
        "pytest",
        "python3",
        "rg",
        "rm",
        "sed",
        "sort",
        "tail",
        "tar",
        "tee",
        "touch",
        "tr",
    ),
    *("uniq", "wc", "while", "xargs", "\u00fcber", "!", "x=y", "{", "#x", "~", "-x"),
)
# `cat` without words is itself, and not written down: `"$(cat <<'EOF'` stands for the text.
LOGGER: Final = r"""#!/bin/dash
name=${0##*/}
text=
while IFS= read -r line; do text="$text$line
"; done
text="$text$line"
case $name$# in cat0) printf '%s' "$text"; exit ;; esac
cd -P .
record="${#0}:$0
${#PWD}:$PWD
${#text}:$text
$#
"
for word do record="$record${#word}:$word
"; done
{ printf '%s' "$record"; export -p; } >/log/run.$$
echo $$ >>/log/order
echo "error of $name" >&2
printf '%s\n%s' "$name" "$text"
case $name in
  false | grep | rg | test) exit 1 ;;
  diff) exit 2 ;;
  jq) exit 5 ;;
  killed) kill -9 $$ ;;
esac
exit 0
"""
_FILES: Final = {
    "a.txt": "alpha\n",
    "b.txt": "beta\ngamma\n",
    "c d.txt": "spaces\n",
    ".hidden": "hidden\n",
    "-dash": "dash\n",
    "--flag": "",
    "[x]": "brackets\n",
    "star*": "star\n",
    "back\\slash": "back\n",
    "new\nline": "line\n",
    "quote'd": "quote\n",
    "\u00fcmlaut.txt": "umlaut\n",
    "A.TXT": "upper\n",
    "x1": "1\n",
    "x2": "",
    "x10": "",
    "src/main.py": "print()\n",
    "src/lib/util.py": "pass\n",
    "src/-n": "",
    "src/.env": "KEY=1\n",
    "locked": "locked\n",
}
_LINKS: Final = {
    "link-in": "a.txt",
    "link-out": "../outside/read.txt",
    "dir-in": "src",
    "dir-out": "/world/outside",
    "dangling": "nowhere",
    "dangling-out": "/world/outside/made.txt",
    "loop": "loop",
    "src/up": "..",
    "src/out": "../../outside",
}
_BESIDE: Final = {"read.txt": TOKEN, "write.txt": TOKEN, f"{TOKEN}.txt": TOKEN, "deep/er/x.txt": TOKEN, ".rc": TOKEN}
Snapshot = dict[bytes, tuple[int, bytes]]
"""Of each path: its type and mode, and its content or the target of the link."""


def make() -> None:
    """
    The world afresh, whatever became of the last one.
    """
    for folder in (WORKSPACE, OUTSIDE, LOG):
        if folder.exists():
            _empty(folder)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
    os.chdir(WORKSPACE)
    for name, text in _BESIDE.items():
        path = OUTSIDE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, text in _FILES.items():
        path = WORKSPACE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (WORKSPACE / "empty").mkdir()
    (WORKSPACE / "locked").chmod(0)
    for name, target in _LINKS.items():
        (WORKSPACE / name).symlink_to(target)
    for name in ("tool", "src/tool"):
        (WORKSPACE / name).write_text(LOGGER, encoding="utf-8")
        (WORKSPACE / name).chmod(0o755)
    (WORKSPACE / "hard").hardlink_to(OUTSIDE / "write.txt")
    (WORKSPACE / "bare").write_text("ls it was run as a script\n", encoding="utf-8")
    (WORKSPACE / "bare").chmod(0o755)
    tidy()


def tidy() -> None:
    """
    An empty log, and the input that each command reads.
    """
    for name in os.listdir(LOG):
        os.unlink(LOG / name)
    (LOG / "in").write_text("first line\nlast line\n", encoding="utf-8")


def _empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, 0o700)
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def marks(folder: Path) -> dict[str, tuple[int, ...]]:
    """
    Of each path in *folder* what changes if it does: much faster than its content.
    """
    found: dict[str, tuple[int, ...]] = {}
    waiting = [str(folder)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            about = entry.stat(follow_symlinks=False)
            found[entry.path] = about.st_mode, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino
            if stat.S_ISDIR(about.st_mode):
                waiting.append(entry.path)
    return found


def snapshot(folder: Path) -> Snapshot:
    """
    All that lies in *folder*.
    """
    found: Snapshot = {}
    waiting = [os.fsencode(folder)]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            about = entry.stat(follow_symlinks=False)
            content = b""
            if stat.S_ISLNK(about.st_mode):
                content = os.readlink(entry.path)
            elif stat.S_ISDIR(about.st_mode):
                waiting.append(entry.path)
            elif stat.S_ISREG(about.st_mode) and about.st_mode & stat.S_IRUSR:
                with open(entry.path, "rb") as file:
                    content = file.read()
            found[entry.path] = about.st_mode, content
    return found
