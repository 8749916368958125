"""
The guard of paths: what stays inside, what leads out, and what is no path.
"""

from pathlib import Path
from typing import Any

import pytest

from hypothesis import given
from hypothesis import strategies as st

from guardrails import Envelope, JsonLines, Policy, Tool, Workspace
from guardrails.core.guards.base import Facts
from guardrails.core.state import SessionState
from guardrails.core.text.path_text import BadPathError, path_of, readings, system, within
from guardrails.core.values.types import ToolCall
from guardrails.sinks import by_session, read
from tests.core.guards.calls import said
from tests.replaying import replay
from tests.tables import table


READ = Tool(name="read", paths=("path", "paths", "edits.path", "*_dir"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src/app.py").write_text("")
    (tmp_path / "secret").write_text("")
    (tmp_path / "workbench").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "file_out").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to(root / "src")
    (root / "dangling").symlink_to(tmp_path / "later")
    (root / "loop").symlink_to(root / "loop")
    return root


def asked(guard: Workspace, arguments: Any) -> Envelope:
    with Policy([guard], tools=[READ]).session("s") as session:
        return session.call("read", arguments, lambda *_: "read")


@table(("path", "code"), [
    *((path, None) for path in (
        "src/app.py", "src/new/deep/file.txt", ".", "in/app.py", "./~/x", "src\\app.py", "‥/ﾠ/．．/x", "…/x", "src/%2e%2e/x",  # noqa: RUF001
    )),
    *((path, "workspace.root") for path in (
        "..", "../secret", "/etc/passwd", "out/secret", "out/new/file", "file_out", "dangling", "../workbench/x", "..\\secret",
        "\\\\server\\share", "file:///etc/passwd", "file:///%65tc/passwd",
    )),
])  # fmt: skip
def test_d6_a_path_inside_passes_and_one_that_leads_out_is_denied(root: Path, path: str, code: str | None) -> None:
    envelope = asked(Workspace(root=str(root)), {"path": path})
    assert envelope.code == code
    assert code is None or said(envelope, "error_type", "retryable_after_correction") == ("invalid_path", True)


@table(("path", "reason"), [
    ("", "empty"), ("src\0/x", "NUL"), ("~/x", "`~`"), ("C:\\x", "another system"), ("http://example.com/x", "URL"),
    ("file://host/x", "another machine"), ("\ud800", "Unicode"), ("a" * 5_000, "4,096"), (3, "not text"),
])  # fmt: skip
def test_what_is_no_path_is_denied_with_the_reason(root: Path, path: object, reason: str) -> None:
    envelope = asked(Workspace(root=str(root)), {"path": path})
    assert envelope.code == "workspace.root"
    assert reason in str(envelope.message)


@table(("arguments", "code"), [
    ({"path": "{root}/src/app.py"}, None), ({"path": "file://{root}/src/new.py"}, None), ({"path": "{root}bench/x"}, "root"),
    ({"paths": ["src", "in"], "target_dir": None, "other": "/etc"}, None), ({"paths": ["src", "/etc"]}, "root"),
    ({"edits": [{"path": "src"}, {"path": "../x"}]}, "root"), ({"target_dir": "/"}, "root"),
    ({"paths": ["src", ["in"]]}, "root"), ({"edits": [{"path": "src"}] * 1_001}, "root"),
])  # fmt: skip
def test_absolute_paths_lists_and_nested_arguments_are_looked_into(root: Path, arguments: Any, code: Any) -> None:
    if isinstance(path := arguments.get("path"), str):
        arguments = {"path": path.format(root=root)}
    assert asked(Workspace(root=str(root)), arguments).code == (code and f"workspace.{code}")


def test_a_workspace_may_itself_be_a_link_or_have_further_folders(root: Path, tmp_path: Path) -> None:
    link, bench = tmp_path / "link", tmp_path / "workbench/x"
    link.symlink_to(root)
    guard = Workspace(root=str(link), also=(str(bench.parent),))
    assert asked(
        guard, {"paths": ["src/app.py", str(link / "src"), str(root / "src"), str(bench), "../workbench/x"]}
    ).ok
    for out in ("../secret", str(tmp_path / "secret")):
        assert asked(guard, {"path": out}).code == "workspace.root"


@table(("root", "path", "held"), [
    *(("/w", path, True) for path in ("a/../b", "/w/a", "/w", "/w/a/..")), *(("/w", path, False) for path in ("../x", "/w/../x", "/wx")),
    (".", "../x", False), (".", "/any/where", True), (".", "a", True), (".", "a/../..", False), (".", "..a", True), ("/", "/a", True),
    ("s", "a", True), ("s", "../a", False), ("s", "../s/a", True),
])  # fmt: skip
def test_without_a_file_system_paths_are_judged_by_their_text(root: str, path: str, held: bool) -> None:
    call = ToolCall("read", {"path": path}, "1", None, None)
    denial = Workspace(root=root).check(call, SessionState(), None, Facts(0, READ))
    assert (denial and denial.code) == (None if held else "workspace.root")


@pytest.mark.parametrize("arguments", ["full", "hash"])
def test_a_replay_decides_alike_whatever_became_of_the_links(root: Path, tmp_path: Path, arguments: Any) -> None:
    policy = Policy([Workspace(root=str(root))], tools=[READ])
    sink = JsonLines(tmp_path / "calls.jsonl", arguments=arguments)
    with policy.session("s", records=sink) as session:
        for path in ("src/app.py", "out/secret", "in/app.py"):
            session.call("read", {"path": path}, lambda *_: "read")
    sink.close()
    (root / "out").unlink()
    (root / "in").unlink()
    (root / "in").symlink_to("/")
    [records] = by_session(read(tmp_path / "calls.jsonl")).values()
    replayed = [each.made["code"] for each in replay(policy.chain, records)]
    assert replayed == [None, "workspace.root", None]


# What a path says, before any file system is asked


@given(st.lists(st.sampled_from(["a", "b", ".", "..", ""]), max_size=8))
def test_a_path_that_never_goes_up_further_than_down_is_inside(parts: list[str]) -> None:
    depth, lowest = 0, 0
    for part in parts:
        depth += (part in ("a", "b")) - (part == "..")
        lowest = min(lowest, depth)
    path = "/".join(["w", *parts])
    assert within(system.join("/", path), "/w") or lowest < 0
    assert not within(system.join("/", path), "."), "where a relative folder lies is not known"


def test_a_backslash_is_read_both_ways() -> None:
    assert readings("a\\b") == ("a\\b", "a/b")
    assert readings("a") == ("a",)


@given(st.text())
def test_any_text_is_a_path_or_told_why_not(text: str) -> None:
    try:
        assert "\0" not in path_of(text)
    except BadPathError as error:
        assert str(error)  # noqa: PT017
