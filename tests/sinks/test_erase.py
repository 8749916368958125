import dataclasses

from typing import Any

import orjson

from guardrails.core.text.signature import sign
from tests.sinks.conftest import written
from tests.tables import table


ARGUMENTS = {
    "city": "Shibuya",
    "password": "hunter2",
    "headers": {"Authorization": "Bearer x", "accept": "text"},
    "users": [{"name": "a", "token": "t0"}, {"name": "b", "token": "t1"}],
}


def without(*keys: str) -> dict[str, object]:
    return {key: value for key, value in ARGUMENTS.items() if key not in keys}


@table(
    ("paths", "arguments", "erased"),
    [
        (["arguments.password"], without("password"), ["arguments.password"]),
        (["arguments.PASS*"], without("password"), ["arguments.password"]),
        (["arguments.pass"], ARGUMENTS, None),
        (["password"], ARGUMENTS, None),
        (
            ["arguments.headers.*"],
            {**ARGUMENTS, "headers": {}},
            ["arguments.headers.Authorization", "arguments.headers.accept"],
        ),
        (
            ["arguments.headers.authorization"],
            {**ARGUMENTS, "headers": {"accept": "text"}},
            ["arguments.headers.Authorization"],
        ),
        (
            ["arguments.users.*.token", "arguments.password"],
            {**without("password"), "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token", "arguments.password"],
        ),
        (["arguments.*.token"], ARGUMENTS, None),
        (["arguments.users.1"], {**ARGUMENTS, "users": [{"name": "a", "token": "t0"}, None]}, ["arguments.users.1"]),
        (
            ["arguments.**.token"],
            {**ARGUMENTS, "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token"],
        ),
        (
            ["**.token", "**.token"],
            {**ARGUMENTS, "users": [{"name": "a"}, {"name": "b"}]},
            ["arguments.users.0.token", "arguments.users.1.token"],
        ),
        (["arguments.**"], {}, [f"arguments.{key}" for key in ARGUMENTS]),
        (["arguments.*", "arguments.password"], {}, [f"arguments.{key}" for key in ARGUMENTS]),
        (["arguments"], None, ["arguments"]),
        (["arg*.city.*"], ARGUMENTS, None),
    ],
)
@table("ready", [False, True])
def test_redaction_erases_by_path_and_says_what(
    paths: list[str], arguments: object, erased: list[str] | None, ready: bool
) -> None:
    before = orjson.dumps(ARGUMENTS)
    record = written({"n": 1, "tool": "t", "arguments": before if ready else ARGUMENTS}, redact=tuple(paths))

    assert record.get("arguments") == arguments
    assert record.get("erased") == erased
    assert (record["n"], record["tool"]) == (1, "t")
    assert orjson.dumps(ARGUMENTS) == before


@dataclasses.dataclass(slots=True)
class Hotel:
    name: str


def nested(depth: int, value: Any = 1) -> Any:
    for _ in range(depth):
        value = [value]
    return value


@table(
    ("arguments", "kept"),
    [
        ('{"password": "hunter2"', None),
        (b'{"password": "hunter2"', None),
        (orjson.Fragment(b'{"password": "hunter2"'), None),
        (lambda: "password=hunter2", None),
        (orjson.Fragment(b"[" * 150 + b'{"password":"hunter2"}' + b"]" * 150), nested(150, {})),
        ([orjson.Fragment(b"[" * 3000 + b'"hunter2"' + b"]" * 3000), 2**70], ...),
        (nested(3000, "hunter2"), ...),
        (orjson.Fragment(b'{"n":18446744073709551616,"password":"hunter2"}'), {"n": 2**64}),
        (Hotel({"password": "hunter2"}), {"name": {}}),  # type: ignore[arg-type]
        (b'{"a":"\\ud800","password":"hunter2"}', {"a": "\ud800"}),
        ([{"b": b"\xff", "password": "hunter2"}], [{"b": "/w=="}]),
    ],
)
def test_what_cannot_be_looked_into_is_erased_whole(arguments: object, kept: object) -> None:
    record = written({"n": 1, "arguments": arguments}, redact=("arguments.**.password",))

    assert "hunter2" not in str(record)
    if kept is None:
        assert record == {"n": 1, "erased": ["arguments"]}
    elif kept is not ...:
        assert record["arguments"] == kept


@dataclasses.dataclass
class Login:
    user: str
    password: str
    tags: frozenset[str] = frozenset()


@table(
    ("arguments", "path", "erased"),
    [
        ({"login": Login("anna", "hunter2")}, "arguments.login.password", "arguments.login.password"),
        ({"logins": [Login("anna", "hunter2")]}, "arguments.logins.*.password", "arguments.logins.0.password"),
        ({"login": Login("anna", "", frozenset({"hunter2"}))}, "**.tags.*", "arguments.login.tags.0"),
        ({"login": Login("anna", "hunter2")}, "arguments.**.password", "arguments.login.password"),
        ({"by_id": {1: "hunter2", 2: "x"}}, "arguments.by_id.1", "arguments.by_id.1"),
        ({"by_id": {1: {"password": "hunter2"}}}, "arguments.by_id.*.password", "arguments.by_id.1.password"),
        ({"secrets": {"hunter2"}}, "arguments.secrets.0", "arguments.secrets.0"),
        ({"secret": b"hunter2"}, "arguments.secret", "arguments.secret"),
    ],
)
def test_a_path_leads_through_the_tags_of_signed_arguments(arguments: object, path: str, erased: str) -> None:
    _, canonical = sign("t", arguments)
    assert canonical is not None
    record = {"arguments": orjson.Fragment(canonical), "problems": [["", "not hunter2", "value"]]}
    line = written(record, redact=(path,))

    assert "hunter2" not in str(line)
    assert b"hunter2".hex() not in str(line)
    assert line["erased"] == [erased, "problems"]


CALL = {
    "n": 1,
    "sig": -5,
    "near_sig": 6,
    "arguments": {"a": 1},
    "result": "text",
    "result_hash": 7,
    "result_hash_masked": 8,
    "result_bytes": 4,
}


@table(
    ("settings", "gone"),
    [
        ({}, ["result"]),
        ({"results": "full"}, []),
        ({"arguments": "hash"}, ["arguments", "result"]),
        ({"arguments": "off", "results": "full"}, ["sig", "near_sig", "arguments"]),
        ({"results": "off"}, ["result", "result_hash", "result_hash_masked"]),
        ({"arguments": "hash", "redact": ("arguments.a",)}, ["arguments", "result"]),
    ],
)
def test_arguments_and_results_may_be_left_out_but_for_their_hashes(settings: dict[str, Any], gone: list[str]) -> None:
    record = written(CALL, **settings)

    assert record.pop("erased", []) == gone
    assert record == {key: value for key, value in CALL.items() if key not in gone}
