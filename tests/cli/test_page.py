"""
The page that `--html` writes: one file that asks nobody, holds the JSON of a command, and draws it.
"""

import base64
import hashlib
import json
import re

from pathlib import Path
from typing import Any, Final

import pytest

from guardrails.cli.console import PAGE, page
from tests.cli.command import guardrails
from tests.pages import EVIL, document, in_browser
from tests.tables import table


LEARNED: Final = json.loads((Path(__file__).with_name("files") / "failure.json").read_text())
FAILURE: Final[dict[str, Any]] = {"tool": EVIL, "sentence": EVIL, **LEARNED}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, Any]]:
    """
    What commands say with `--json` of calls whose names and results are markup, by the commands.
    """
    calls = tmp_path_factory.mktemp("calls") / "calls.jsonl"
    tools = ["search"] * 6 + [EVIL] * 4
    texts = [EVIL] * 5 + ["Error: timeout"] * 5
    lines = [
        {"source": EVIL, "session_id": "s", "tool": tool, "arguments": {"q": EVIL}, "result": text, "ts": 1.8e9 + n}
        for n, (tool, text) in enumerate(zip(tools, texts, strict=True))
    ]
    calls.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = (["report"], ["replay", "strict"], ["replay", "default", "--compare", "strict"])
    runs = [guardrails(*words, calls, "--json") for words in asked]
    said = [(words[0], json.loads(run.stdout)) for words, run in zip(asked, runs, strict=True)]
    return [*said, ("profile", [FAILURE]), ("profile", [])]


def test_no_text_leaves_the_element_that_holds_it(drawn: Any) -> None:
    for command, data in drawn:
        text = page(command, data)
        assert document(text) == {"command": command, "data": data}
        head, _, rest = PAGE.read_text().partition("DATA")
        assert text.endswith(rest)
        assert text.count("</script>") == (head + rest).count("</script>") == 2


def test_a_page_is_small_and_may_load_nothing_and_run_its_own_script_only() -> None:
    text = page("profile", [])
    script = text.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:" in text
    assert set(re.findall(r"https?://[^\"'` ]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|import\(|url\(", text)
    assert len(PAGE.read_text().splitlines()) <= 350


@pytest.mark.system
@table("width", [1280, 390])
def test_a_browser_draws_every_page_and_takes_no_word_for_markup(width: int, tmp_path: Path, drawn: Any) -> None:
    measure = "document.body.dataset.fits = document.documentElement.scrollWidth <= innerWidth"
    for at, (command, data) in enumerate(drawn):
        text = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page(command, data))
        folder = tmp_path / f"{width}-{at}"
        folder.mkdir()
        shown = in_browser(text.replace("</body>", f"<script>{measure}</script></body>"), folder, width)
        assert 'data-fits="true"' in shown
        assert "<h1>" in shown
        assert "<img" not in shown
        if data:
            assert "onerror=alert(1)" in shown.split("</script>", 2)[-1]
