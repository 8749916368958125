"""
Install published MCP servers, the official suite and a validating client into .venv-mcp, and test the proxy with them:
python -m tests.system.mcp [ARGUMENT...]

A part that cannot be installed is named, and its tests are skipped with the reason. Arguments go to pytest.
"""

import os
import subprocess
import sys
import tomllib
import venv

from pathlib import Path


HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FOLDER = ROOT / ".venv-mcp"


def main(*arguments: str) -> int:
    versions = tomllib.loads((HERE / "versions.toml").read_text())
    python = FOLDER / "bin" / "python"
    os.environ["PATH"] = os.pathsep.join((str(python.parent), os.environ.get("PATH", "")))
    if not python.exists():
        venv.create(FOLDER, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    npm = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(FOLDER / "node")]
    parts = [[*pip, *versions["python"]], [*pip, *versions["node"]], [*npm, *versions["npm"]]]
    missing = [part[-1] for part in parts if subprocess.run(part, check=False).returncode]
    print("".join(f"--- cannot be installed: {part} and those beside it\n" for part in missing), end="", flush=True)
    os.environ["GUARDRAILS_MCP_HOME"] = str(FOLDER)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--durations=5", str(HERE), *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
