"""
Build the site: `python -m docs.site [FOLDER]`; the folder is `.site` of the repository unless it is named. A site that it holds
is replaced. A folder with anything else is left alone.

A warning of Sphinx, a link that leads nowhere and a page that would ask another machine for anything are errors.
"""

import shutil
import sys
import tempfile

from pathlib import Path

from .llms import llms
from .nav import ROOT
from .requests import dead, requests
from .staging import BrokenLinkError, stage


HERE = Path(__file__).parent


def main(folder: str = "") -> int:
    """
    Build the site into *folder*; the exit code: 0 if nothing is wrong, 2 if it cannot be built there.
    """
    out = Path(folder).resolve() if folder else ROOT / ".site"
    if folder.startswith("-") or not replaceable(out):
        print(f"`{folder}` is no place for the site: name a folder that is new, empty or holds a site", file=sys.stderr)
        return 2
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory() as staged:
        source, options = Path(staged) / "docs", Path(staged) / "conf"
        (options / "_static").mkdir(parents=True)
        shutil.copyfile(HERE / "conf.py", options / "conf.py")
        shutil.copyfile(HERE / "site.css", options / "_static/site.css")
        try:
            stage(source)
        except BrokenLinkError as error:
            print(f"these links lead nowhere:\n{error}", file=sys.stderr)
            return 1
        shutil.rmtree(out, ignore_errors=True)
        strict = ("-W", "--keep-going", "-n", "-q", "-j", "auto", "-b", "html")
        code = build_main([*strict, "-d", f"{staged}/doctrees", "-c", str(options), str(source), str(out)])
    if code:
        return int(code)
    (out / "llms.txt").write_text(llms(), encoding="utf-8")
    (out / ".buildinfo").unlink(missing_ok=True)
    asked = requests(out)
    for line in asked:
        print(f"asks another machine: {line}", file=sys.stderr)
    lost = dead(out)
    for line in lost:
        print(f"leads nowhere: {line}", file=sys.stderr)
    pages = sum(1 for _ in out.rglob("*.html"))
    print(f"{pages} pages in {out}")
    return 1 if asked or lost else 0


def replaceable(folder: Path) -> bool:
    """
    Whether nothing is lost if *folder* is replaced: it is not there, is empty, or holds a site, even a half of one.
    """
    if not folder.exists() or folder == ROOT / ".site":
        return True
    if not folder.is_dir():
        return False
    return not any(folder.iterdir()) or any((folder / name).is_file() for name in (".buildinfo", "objects.inv"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
