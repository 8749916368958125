"""
What a proxy in front of an MCP server costs a call and a start: none, `guardrails mcp`, and FastMCP's own.

    python -m benchmarks.proxy [--calls N] [--fastmcp PYTHON] [--json]

The three take turns; the tap has the policy `default`, SQLite and records. Calls in a row are those of a busy agent, 40 of each
of its runs. Paced ones come 22 ms after each other, so that processors have gone to sleep and caches are cold. CPU is that of the
proxy's own process and none of its server's, and is read on Linux only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from contextlib import suppress
from pathlib import Path
from typing import Any


ROOT = Path(__file__).parents[1]
FASTMCP = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[1], sys.argv[2:])).run(show_banner=False)
"""
SERVER = (sys.executable, str(ROOT / "tests/mcp/server.py"), "plain")
PACE_S = 0.022
IN_A_ROW = 40
"""Calls of one run, without a pause: the policy `default` lets 50 of a session run in a second."""
RUN = "io.github.toolcall-guardrails/run"
CALLS, MOST = 300, 900
STARTS = 7


class Peer:
    """
    A server, or a proxy before it, as *command* starts it.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        began, environment = time.perf_counter(), {**os.environ, "PYTHONPATH": str(ROOT)}
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.popen: Any = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
        self.ask("initialize", hello)
        self.boot_ms = (time.perf_counter() - began) * 1000
        self.cpu_ms = cpu_ms(self.popen.pid)
        self.send({"method": "notifications/initialized"})
        self.ask("tools/list", {})
        self.ready_cpu_ms = cpu_ms(self.popen.pid)

    def send(self, message: dict[str, Any]) -> None:
        """
        Send *message*.
        """
        self.popen.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.popen.stdin.flush()

    def ask(self, method: str, params: Any, id_: int = 0) -> Any:
        """
        The result of a request.
        """
        self.send({"id": id_, "method": method, "params": params})
        while line := self.popen.stdout.readline():
            said = json.loads(line)
            if said.get("id") == id_ and "method" not in said:
                return said["result"]
        raise RuntimeError("the server ended")

    def call(self, n: int, run: str) -> float:
        """
        Milliseconds of the call number *n*, which is of *run*.
        """
        params = {"name": "add", "arguments": {"a": n, "b": n}, "_meta": {RUN: run}}
        began = time.perf_counter()
        result = self.ask("tools/call", params, n)
        took = (time.perf_counter() - began) * 1000
        if result.get("isError"):
            raise RuntimeError(str(result))
        return took

    def end(self) -> None:
        """
        End it.
        """
        with suppress(OSError):
            self.popen.stdin.close()
        try:
            self.popen.wait(10)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


def cpu_ms(process: int) -> float | None:
    """
    CPU time of all threads of *process*, in milliseconds. Returns None where nobody says.
    """
    try:
        # As `clock_getcpuclockid` makes it; threads that have ended count too.
        return time.clock_gettime((~process << 3) | 2) * 1000
    except (OSError, AttributeError, OverflowError):
        return None


def commands(folder: str, fastmcp: str) -> dict[str, tuple[str, ...]]:
    """
    How to start each of those that are compared.
    """
    kept = ("--store", f"{folder}/state.db", "--records", f"{folder}/records.jsonl")
    made = {"direct": SERVER, "tap": (sys.executable, "-m", "guardrails", "mcp", *kept, "--", *SERVER)}
    with suppress(OSError, subprocess.CalledProcessError):
        subprocess.run((fastmcp, "-c", "import fastmcp.server"), capture_output=True, check=True)
        made["fastmcp"] = (fastmcp, "-c", FASTMCP, *SERVER)
    return made


def latencies(peers: dict[str, Peer], calls: int, *, paced: bool) -> dict[str, list[float]]:
    """
    Milliseconds of each of *calls* calls: of *peers* in turn one if they are *paced*, else as many as are made in a row.
    """
    took: dict[str, list[float]] = {name: [] for name in peers}
    size = 1 if paced else IN_A_ROW
    for first in range(1, calls + 1, size):
        for name, peer in peers.items():
            run = "paced" if paced else f"run-{first}"
            took[name] += [peer.call(n, run) for n in range(first, min(first + size, calls + 1))]
        time.sleep(PACE_S)
    return took


def least(command: tuple[str, ...], count: int) -> dict[str, float | None]:
    """
    The least of *count* starts: CPU and wall until `initialize` is answered, CPU until `tools/list` is.
    """
    started = []
    for _ in range(count):
        started.append(Peer(command))
        started[-1].end()
    found: dict[str, float | None] = {}
    for what in ("cpu_ms", "ready_cpu_ms", "boot_ms"):
        known = [value for value in (getattr(peer, what) for peer in started) if value is not None]
        found[what] = round(min(known), 1) if known else None
    return found


def figures(kind: str, took: dict[str, list[float]], name: str) -> dict[str, float | None]:
    """
    What the calls of *name* took, and how much more than without a proxy.
    """
    p50 = statistics.median(took[name])
    return {
        f"{kind}p50_ms": round(p50, 3),
        f"{kind}added_p50_ms": round(p50 - statistics.median(took["direct"]), 3),
        f"{kind}p95_ms": round(statistics.quantiles(took[name], n=20)[-1], 3),
    }


def main() -> None:
    """
    Measure, and print a table or JSON.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=CALLS, help=f"at most {MOST}")
    parser.add_argument("--starts", type=int, default=STARTS)
    parser.add_argument("--fastmcp", default=sys.executable, help="an interpreter that has fastmcp")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = commands(folder, options.fastmcp)
        peers = {name: Peer(command) for name, command in made.items()}
        try:
            row, paced = (latencies(peers, min(options.calls, MOST), paced=paced) for paced in (False, True))
        finally:
            for peer in peers.values():
                peer.end()
        for name, command in made.items():
            report[name] = figures("", row, name) | figures("paced_", paced, name) | least(command, options.starts)
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{'':8} " + " ".join(f"{head:>18}" for head in report["direct"]))
    for name, found in report.items():
        print(f"{name:8} " + " ".join(f"{value!s:>18}" for value in found.values()))
    if "fastmcp" not in report:
        print(f"fastmcp is skipped: `{options.fastmcp}` has none; name an interpreter by --fastmcp")


if __name__ == "__main__":
    main()
