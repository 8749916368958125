"""
`guardrails run` with a real model that really chooses (D10): optional, `python3 dev.py model`.
"""

import json
import os
import threading

from collections.abc import Iterator
from pathlib import Path

import pytest

from typer.testing import CliRunner

from guardrails.cli import app
from tests.agent.real_model import ToolsByGrammar, started


PYTHON = os.environ.get("GUARDRAILS_MODEL_PYTHON")
"""The Python that has the model."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs a real model: python3 dev.py model"),
]


@pytest.fixture
def endpoint() -> Iterator[str]:
    with started(PYTHON or "") as address, ToolsByGrammar(address) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_d10_a_real_model_works_behind_the_guards_until_it_answers_or_a_limit_makes_it(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "tools.py").write_text(
        f"def look_up(city: str) -> str:\n"
        f'    "Look up the weather of a city."\n'
        f"    with open({str(tmp_path / 'looked_up')!r}, 'a') as file:\n"
        f"        file.write(city + '\\n')\n"
        f"    return 'rain in ' + city\n"
    )
    (tmp_path / "policy.yaml").write_text("version: 1\nextends: default\nbudget: {max_calls: 2}\n")
    arguments = ["run", "What is the weather in Paris? Look it up.", "--base-url", endpoint, "--model", "smollm2-135m"]
    arguments += [
        "--no-builtins",
        "--tools",
        str(tmp_path / "tools.py"),
        "--policy",
        str(tmp_path / "policy.yaml"),
        "--json",
    ]
    shown = CliRunner().invoke(app, [*arguments, "--conversation", str(tmp_path / "kept.db")])
    assert shown.exit_code in (0, 1), shown.output
    told = json.loads(shown.stdout)
    ran = (tmp_path / "looked_up").read_text().splitlines()
    print(shown.stderr, told["answer"])  # noqa: T201  what a real model does is worth a look
    assert 1 <= len(ran) == told["progress"]["calls_used"] <= 2
    assert told["answer"].strip()
    assert told["ended"] == ("answered" if shown.exit_code == 0 else "forced")
    # Nobody knows what a model of one's own costs: it is not shown as free.
    assert told["unpriced"] == told["requests"]
