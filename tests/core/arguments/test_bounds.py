"""
Arguments whose mistakes are out of all proportion.
"""

import json
import subprocess
import sys

import pytest


# In a child with little memory and time: an abort is a failed test.
CHILD = """
import json, resource
from pydantic import BaseModel
from guardrails.core.arguments import arguments_of

class Given(BaseModel, extra="forbid"):
    rows: list[int] = []
    unions: list[int | bool | list[int]] = []
    inner: list[list[int]] = []

resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (300 << 20),) * 2)
item = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
fields = {"rows": {"type": "array", "items": {"type": "integer"}}, "unions": {"type": "array", "items": item}}
fields["inner"] = {"type": "array", "items": fields["rows"]}
lacking = {"type": "object", "required": [f"k{n}" for n in range(300)]}
schema = {"type": "object", "properties": fields | {"x": {"type": "array", "items": lacking}}, "additionalProperties": False}
wrong = [
    {"rows": ["a"] * 100_000},
    {"rows": [1] * 20_000 + ["a"] * 100_000},
    {"unions": ["a"] * 100_000},
    {"inner": [["a"] * 1_000] * 300},
    {"x": [{}] * 9_000},
    {f"k{n}": 0 for n in range(100_000)},
]
print(json.dumps([len(arguments_of(kind).check(given)[1]) for kind in (Given, schema) for given in wrong]))
"""


@pytest.mark.system
@pytest.mark.skipif(sys.platform != "linux", reason="limits and sizes of Linux")
def test_what_fits_nowhere_is_told_in_bounded_time_and_space() -> None:
    ran = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-500:]
    assert all(0 < problems <= 20 for problems in json.loads(ran.stdout))
