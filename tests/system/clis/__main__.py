"""
Install coding CLIs by npm into .clis and test the hooks with them: python -m tests.system.clis [NAME...] [ARGUMENT...]

Without a name, those that are free; Claude Code is proprietary and is installed if it is named only. Arguments go to pytest.
"""

import os
import subprocess
import sys
import tomllib

from pathlib import Path


ROOT = Path(__file__).parents[3]
FOLDER = ROOT / ".clis"


def main(*arguments: str) -> int:
    known = tomllib.loads((Path(__file__).parent / "versions.toml").read_text(encoding="utf-8"))
    chosen = [name for name in known if name in arguments] or [n for n in known if not known[n]["optional"]]
    packages = [f"{known[name]['package']}@{known[name]['version']}" for name in chosen]
    FOLDER.mkdir(exist_ok=True)
    npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", str(FOLDER)]
    if subprocess.run([*npm, *packages], check=False).returncode:
        print(f"npm cannot install {', '.join(packages)}; `node` 20 or newer and `npm` are needed", file=sys.stderr)
        return 2
    os.environ |= {"GUARDRAILS_CLIS": str(FOLDER / "node_modules"), "GUARDRAILS_CLIS_ASKED": " ".join(chosen)}
    more = [argument for argument in arguments if argument not in known]
    command = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent), *more]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
