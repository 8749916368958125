"""
The house: few rooms, each import downward, no circle, and a core that does no I/O.
"""

import subprocess
import sys

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.layers import PACKAGE, ROOMS, Sources, circles, extras, impure, room_of, sources, upward


MODULES = sources()


def beyond_the_required(modules: Sources) -> list[str]:
    return extras(modules, frozenset(sys.stdlib_module_names))


def folders() -> list[Path]:
    return sorted({path.parent for path in PACKAGE.rglob("*.py")})


def test_the_house_has_few_rooms() -> None:
    beside = {"__init__.py", "__main__.py", "py.typed", "__pycache__", "_policies"}
    assert len({path.name for path in PACKAGE.iterdir()} - beside) <= 24


def test_every_module_has_a_room_and_every_room_a_module() -> None:
    assert {room_of(module) for module in MODULES} - {None} == set(ROOMS)
    assert [module for module in MODULES if room_of(module) is None] == ["core.__init__", "offline.__init__"]


def test_the_tests_stand_as_the_modules_do() -> None:
    tests = Path(__file__).parent
    homes = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    apart = {"clis", "docs", "faults", "golden", "hard", "hosts", "mutants", "notebooks", "retry_simulator"}
    apart |= {"peers", "release", "rollout", "sandbox", "shellfuzz", "soak", "transcripts"}
    strays = {
        str(path.parent.relative_to(tests))
        for path in tests.rglob("test_*.py")
        if path.relative_to(tests).parts[0] not in apart
    } - homes
    assert strays <= {"."}


@pytest.mark.parametrize("check", [upward, circles, impure, beyond_the_required])
def test_the_house_stands(check: Callable[[Sources], list[str]]) -> None:
    assert check(MODULES) == []


@cache
def usual(check: Callable[[Sources], list[str]]) -> list[str]:
    """
    What a check finds in the library as it is.
    """
    return check(MODULES)


@pytest.mark.parametrize(
    ("check", "module", "planted", "said"),
    [
        (upward, "core.state.planted", "from guardrails.core.guards.base import Guard", "core.guards.base"),
        (upward, "core.engine.planted", "import guardrails.offline.judge.files.run", "offline.judge.files.run"),
        (upward, "session.planted", "def f():\n    from guardrails.agent import view", "agent.view"),
        (upward, "policy.planted", "from ..integrations import openai", "integrations.openai"),
        (
            upward,
            "stores.planted",
            "if TYPE_CHECKING:\n    from guardrails.policy.policy import Policy",
            "policy.policy",
        ),
        (upward, "sinks.planted", "from guardrails import Policy", "the front door"),
        (upward, "core.text.other", "from ...policy import policy", "policy.policy"),
        (upward, "core.text.other", "import guardrails.session.session as own", "session.session"),
        (upward, "session.planted", "def f():\n    return __import__('guardrails.cli.run')", "cli.run"),
        (upward, "session.planted", "import importlib\nimportlib.import_module('guardrails.offline.judge')", "offline"),
        (upward, "session.planted", "import_module('..policy.check', __package__)", "policy.check"),
        (upward, "session.planted", "def f(name):\n    import_module(f'guardrails.agent.{name}')", "agent"),
        (upward, "session.planted", "def f(name):\n    import_module('guardrails.agent.' + name)", "agent"),
        (upward, "session.planted", "def f():\n    return guardrails.policy.policy.Policy", "policy.policy"),
        (circles, "core.text.collect", "from .planted import x", "core.text.planted"),
        (circles, "core.text.collect", "def f():\n    from . import planted", "core.text.planted"),
        (circles, "core.text.collect", "if typing.TYPE_CHECKING:\n    from .planted import X", "core.text.planted"),
        (circles, "core.text.collect", "def f():\n    import_module('.planted', __package__)", "core.text.planted"),
        (circles, "core.text.collect", "import guardrails.core.text.planted as own", "core.text.planted"),
        (impure, "core.engine.planted", "from time import time", "time.time"),
        (impure, "core.engine.planted", "import http.client", "http.client"),
        (impure, "core.engine.planted", "def f():\n    from urllib.request import urlopen", "urllib.request"),
        (impure, "core.engine.planted", "from pathlib import Path\nPath('x').read_text()", "read_text"),
        (impure, "core.engine.planted", "def f():\n    return open('x')", "open"),
        (impure, "core.engine.planted", "from datetime import datetime\ndatetime.now()", "now"),
        (impure, "core.engine.planted", "import sys\nsys.stdin.read()", "stdin"),
        (impure, "core.guards.planted", "def f():\n    import os.path", "os.path"),
        (beyond_the_required, "core.outcome.planted", "import numpy", "numpy"),
        (beyond_the_required, "session.planted", "def f():\n    from openai import OpenAI", "openai.OpenAI"),
        (beyond_the_required, "session.planted", "def f():\n    import_module('openai')", "openai"),
        (beyond_the_required, "session.turns.prices", "import genai_prices", "genai_prices"),
    ],
)
def test_a_planted_import_that_is_wrong_is_found(
    check: Callable[[Sources], list[str]], module: str, planted: str, said: str
) -> None:
    modules = {**MODULES, "core.text.planted": "from .collect import collected", module: planted}
    found = check(modules)
    assert len(found) > len(usual(check))
    assert any(said in wrong for wrong in found)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_is_longer_than_a_reader_keeps_in_mind(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_no_folder_holds_more_than_a_dozen_modules(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 12


def test_names_from_before_the_rooms_find_the_same_modules() -> None:
    script = """
from guardrails.builtin import builtin_tools
from guardrails.feature_file import shipped_spec
from guardrails.learning.extract import extract
from guardrails.learning.train import cells_beside
from guardrails.model_files import read_model
from guardrails.policy_cases import load_cases, run_case
from guardrails.replay import replay_together
import guardrails.commands, guardrails.judge
import guardrails.retries.profiles as before, guardrails.core.retries.profiles as now
assert before is now and now.__spec__.name == "guardrails.core.retries.profiles"
try:
    import guardrails.retries.nothing
except ModuleNotFoundError as error:
    assert "guardrails.core.retries.nothing" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
