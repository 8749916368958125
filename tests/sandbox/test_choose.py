"""
Which sandbox is taken: one that a trial run showed to work, or none, with what blocked each.
"""

import json
import os
import shutil
import sys

from dataclasses import dataclass
from pathlib import Path

import pytest

from guardrails.core.values.errors import SandboxUnavailable
from guardrails.processes.restrict.landlock import LEAST_ABI, abi
from guardrails.processes.run import run_started
from guardrails.processes.sandbox import Backend, Confinement, Limits, choose, offers
from guardrails.processes.sandbox.blocked import why_not
from guardrails.processes.sandbox.confinement import Program
from guardrails.processes.sandbox.folders import interpreter, package
from guardrails.processes.sandbox.landlock import Landlock
from guardrails.processes.sandbox.memory import key_of, remember, remembered
from guardrails.processes.sandbox.probe import probe
from guardrails.processes.sandbox.unconfined import Unconfined
from guardrails.processes.started import Started

from .conftest import PREFACE, Place


def test_an_unknown_sandbox_is_told() -> None:
    with pytest.raises(ValueError, match="`jail`: it is one of auto, bwrap, landlock, none"):
        choose("jail")  # type: ignore[arg-type]


def test_none_is_taken_only_if_it_is_asked_for() -> None:
    assert choose("none").name == "none"


def test_what_works_is_offered_first_to_last(backend: Backend) -> None:
    found = offers()
    assert [offer.name for offer in found] == ["bwrap", "landlock"]
    works = [offer for offer in found if offer.blocked is None]
    assert choose("auto").name == works[0].name
    assert all(offer.cannot for offer in works)


def test_without_bwrap_the_next_is_taken_and_its_absence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(
        SandboxUnavailable, match=r"bwrap: the program `bwrap` is not installed.*`sandbox: none`"
    ) as caught:
        choose("bwrap")
    assert caught.value.blocked.keys() == {"bwrap"}
    assert caught.value.code == "sandbox.unavailable"
    assert choose("auto").name == "landlock" if offers()[1].blocked is None else True


def test_where_nothing_works_each_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable) as caught:
        choose("auto")
    assert caught.value.blocked == dict.fromkeys(("bwrap", "landlock"), "it needs Linux, and this is macOS")
    assert "`sandbox: none`" in str(caught.value)


def test_a_bwrap_that_cannot_run_a_command_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false = tmp_path / "bwrap"
    false.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    false.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"user namespaces.*setting up uid map"):
        choose("bwrap")


@dataclass(frozen=True)
class Leaks:
    """
    A sandbox that runs commands and confines nothing.
    """

    name: str = "leaks"
    cannot: tuple[str, ...] = ()

    def started(self, confinement: Confinement, program: Program) -> Started:
        return Unconfined().started(confinement, program)


def test_a_trial_run_sees_a_sandbox_that_confines_nothing(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        probe(Leaks(), (str(tmp_path),))
    told = str(caught.value)
    for what in ("read", "write", "change", "tcp", "unix socket", "abstract socket"):
        assert f"`{what}` of what lies outside was possible" in told
    assert "a folder outside was changed" in told
    assert "a socket outside was reached" in told


def test_a_bwrap_that_confines_nothing_is_not_taken(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    false = tmp_path / "bwrap"
    false.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    false.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SandboxUnavailable, match="of what lies outside was possible"):
        choose("bwrap")


def test_a_trial_is_remembered_for_its_key_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("1")
    key = key_of("bwrap", str(program))
    assert not remembered("other", "a key that nobody kept")
    remember("other", key)
    file = tmp_path / "cache" / "guardrails" / "sandbox.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert remembered("other", key)
    os.utime(program, (1, 1))
    assert key_of("bwrap", str(program)) != key
    assert not remembered("other", key_of("bwrap", str(program)))


@pytest.mark.parametrize("spoiled", ["mode", "link", "text", "list", "folder"])
def test_what_others_could_have_written_is_not_believed(tmp_path: Path, spoiled: str) -> None:
    file = tmp_path / "cache" / "guardrails" / "sandbox.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"other": "key of another process"}')
    file.chmod(0o600)
    assert remembered("other", "key of another process")
    if spoiled == "mode":
        file.chmod(0o666)
    elif spoiled == "link":
        file.rename(file.with_name("real"))
        file.symlink_to("real")
    elif spoiled == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_text({"text": "{", "list": "[1]"}[spoiled])
    assert not remembered("other", "key of another process")


UID_MAP = "bwrap: setting up uid map: Permission denied"
PROC = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"


@pytest.mark.parametrize(
    ("output", "files", "said"),
    [
        (UID_MAP, {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor forbids user namespaces"),
        (UID_MAP, {"/proc/sys/kernel/unprivileged_userns_clone": "0"}, "unprivileged_userns_clone=1"),
        (UID_MAP, {"/proc/sys/user/max_user_namespaces": "0"}, "user.max_user_namespaces"),
        (UID_MAP, {"/.dockerenv": ""}, "this container forbids user namespaces"),
        (UID_MAP, {}, "user namespaces are forbidden here"),
        (PROC, {"/.dockerenv": ""}, "shows only a part of /proc"),
        ("guardrails: it is so\n", {}, "it cannot run a command: guardrails: it is so"),
        ("", {}, "it said nothing"),
    ],
)
def test_what_blocks_bwrap_is_told_by_name(output: str, files: dict[str, str], said: str) -> None:
    assert said in why_not("bwrap", output, files.get)


def test_what_landlock_cannot_do_depends_on_the_kernel() -> None:
    assert any("sent signals" in text for text in Landlock(5).cannot)
    assert not any("sent signals" in text for text in Landlock(6).cannot)


def test_without_a_sandbox_limits_and_the_environment_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "planted")
    confinement = Confinement(
        workspace=str(tmp_path), environment={"PATH": os.defpath}, limits=Limits(file_bytes=1 << 20)
    )
    started = Unconfined().started(confinement, ["sh", "-c", "env; ulimit -f"])
    ended = run_started(started, timeout=10, limit=10_000)
    assert "planted" not in ended.output
    assert ended.output.splitlines()[-1] in ("1024", "2048")  # in KiB, or in blocks of 512 bytes
    assert shutil.which("sh") is not None


@pytest.mark.parametrize("backend", ["bwrap"], indirect=True)
def test_where_namespaces_are_forbidden_landlock_is_left_and_bwrap_says_why(place: Place) -> None:
    # In a sandbox of ours no namespace can be made, as in a container.
    code = """
sys.path.append(told)
from guardrails.processes.sandbox import choose, offers
say([[offer.name, offer.blocked] for offer in offers()] + [choose("auto").name])
"""
    if abi() < LEAST_ABI:
        pytest.skip("the kernel has no Landlock, or an old one")
    confinement = Confinement(workspace=str(place.workspace), environment={"PATH": os.environ["PATH"]})
    arguments = [interpreter(), "-I", "-S", "-c", PREFACE + code, json.dumps(str(Path(package()).parent))]
    ended = run_started(place.backend.started(confinement, arguments), timeout=60, limit=100_000)
    assert ended.exit_code == 0, ended
    (first, blocked), (second, works), name = json.loads(ended.output)
    assert (first, second, works, name) == ("bwrap", "landlock", None, "landlock")
    assert "namespace" in blocked
