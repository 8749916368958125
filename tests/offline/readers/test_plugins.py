"""
Readers that other packages add, from a distribution that pip has installed.
"""

import json
import os
import subprocess
import sys
import zipfile

from pathlib import Path

import pytest


PAGE = Path(__file__).parents[3] / "docs" / "readers.md"
CODE = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
"""The example of the page."""
LINES = [
    {"diary": "d", "did": "look", "with": {"at": 1}, "saw": "Error: nothing there"},
    {"diary": "d", "did": "look", "with": {"at": 2}, "saw": '{"type":"text","text":"a door","annotations":null}'},
]


def install(folder: Path, code: str, name: str = "diary", value: str = "their_diary:Diary") -> Path:
    """
    A distribution with one module and one entry point, built by hand and installed by pip without a network.
    """
    wheel = folder / f"their_{name}-1.0-py3-none-any.whl"
    info = f"their_{name}-1.0.dist-info"
    parts = {
        f"their_{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: their-{name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[guardrails.readers]\n{name} = {value}\n",
    }
    record = "".join(f"{path},,\n" for path in [*parts, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as file:
        for path, text in {**parts, f"{info}/RECORD": record}.items():
            file.writestr(path, text)
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target), str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        pytest.skip(f"pip cannot install here: {done.stderr[-200:]}")
    return target


def guardrails(site: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "guardrails", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603


@pytest.fixture
def diary(tmp_path: Path) -> Path:
    file = tmp_path / "diary.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)))
    return file


def test_an_installed_reader_is_used_by_every_tool(tmp_path: Path, diary: Path) -> None:
    site = install(tmp_path, CODE)
    report = guardrails(site, "report", diary, "--json")
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)
    assert found["calls"] == 2
    assert [tool["tool"] for tool in found["tools"]] == ["look"]
    replayed = guardrails(site, "replay", "default", diary, "--json")
    assert json.loads(replayed.stdout)["total"]["calls"] == 2
    trained = guardrails(site, "train", diary, "-o", tmp_path / "m.json", "--dry-run")
    assert "no failed call was ever repeated" in trained.stdout + trained.stderr


def test_a_file_of_a_known_format_stays_with_its_reader(tmp_path: Path, files: Path) -> None:
    greedy = CODE.replace("any(isinstance", "True or any(isinstance")
    report = guardrails(install(tmp_path, greedy), "report", files / "openhands.jsonl", "--json")
    assert json.loads(report.stdout)["calls"] == 2


@pytest.mark.parametrize(
    ("code", "value", "said"),
    [
        ("import nothing_of_that_name", "their_diary:Diary", "cannot be loaded: ModuleNotFoundError"),
        ("Diary = None", "their_diary:Journal", "cannot be loaded: AttributeError"),
        ("class Diary:\n    name = 'diary'", "their_diary:Diary", "lacks `whole`, a bool, the method `recognises`"),
        (
            CODE.replace('"diary" in value', "value.diary"),
            "their_diary:Diary",
            "failed in `recognises`: AttributeError",
        ),
        (CODE.replace('line["with"]', 'line["why"]'), "their_diary:Diary", "failed in `calls` on"),
        (CODE.replace("yield call", "yield line"), "their_diary:Diary", "gave a dict for a `RecordedCall`"),
        (CODE.replace("turn=number", "turn='1'"), "their_diary:Diary", "that is no whole number"),
        *(
            (CODE.replace("turn=number", f"turn=number, {field}={value}"), "their_diary:Diary", said)
            for field, value, said in (
                ("labels", "None", "a call whose `labels` is no tuple"),
                ("polling", "None", "a call whose `polling` is no bool"),
                ("sig", "'x'", "a call whose `sig` is no int"),
                ("cost_usd", "float('inf')", "a call whose `cost_usd` is no amount in USD"),
                ("cost_usd", "'1 USD'", "a call whose `cost_usd` is no amount in USD"),
                ("error_type", "'odd'", "a call whose `error_type` is not one of the known types"),
            )
        ),
    ],
)
def test_a_broken_reader_is_told_with_its_package_and_what_to_do(
    tmp_path: Path, diary: Path, code: str, value: str, said: str
) -> None:
    done = guardrails(install(tmp_path, code, value=value), "report", diary)
    assert done.returncode == 2
    assert said in done.stderr
    assert "of the package `their-diary`" in done.stderr
    assert done.stderr.rstrip().endswith("correct it or uninstall the package")
    assert "Traceback" not in done.stderr


def test_a_broken_reader_does_no_harm_to_files_of_known_formats(tmp_path: Path, files: Path) -> None:
    site = install(tmp_path, "raise RuntimeError('x')")
    assert guardrails(site, "report", files / "atif.json").returncode == 0


def test_no_reader_of_others_is_loaded_by_the_library_itself(tmp_path: Path) -> None:
    site = install(tmp_path, "raise RuntimeError('x')")
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", "import sys, guardrails; print('their_diary' in sys.modules)"]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"
