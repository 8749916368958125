"""
The commands about policy files: check, schema, show, test.
"""

import importlib.util
import json
import re
import sys

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from guardrails.cli.group import Commands, examples
from guardrails.cli.policies import load_policy
from guardrails.cli.text.printing import FOUND, USAGE, fail, paragraph, print_json, printable
from guardrails.core.values.errors import install
from guardrails.offline.figures import plural


if TYPE_CHECKING:
    from guardrails.core.guards.base import Guard
    from guardrails.offline.policy_cases import CaseFile
    from guardrails.offline.policy_cases.report import Suite
    from guardrails.policy.document import Document
    from guardrails.policy.file import Node, Position
    from guardrails.policy.policy import Policy

_PLACED: Final = re.compile(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>[^\n]*)")
Place = tuple[str | int, ...]
"""Keys, and places in lists, that lead to a setting."""

NO_PRICES: Final = (
    f"no model has a price here, so that what its responses cost is not known: {install('prices')}, or write `prices:`"
)
WITHOUT_MODEL: Final = ("mcp", "fastmcp", "proxy")
HOSTS: Final = (
    *("agent-framework", "claude-agent-sdk", "crewai", "google-adk", "langchain", "openai-agents"),
    *("pydantic-ai", "strands", *WITHOUT_MODEL),
)
"""Hosts that an adapter is for, and the MCP proxy."""
OF_MODELS: Final[dict[tuple[str, ...], str]] = {
    ("budget", "max_turns"): "",
    ("budget", "max_tokens"): "tokens",
    ("budget", "max_cost_usd"): "cost_usd",
    ("growth", "max_requests_per_second"): "",
    ("growth", "max_tokens_per_minute"): "tokens",
}
"""Limits of what a model does; with the declaration of a tool by which they count too."""
NOT_HELD: Final[dict[str, tuple[str, dict[tuple[str, ...], str]]]] = {
    **dict.fromkeys(WITHOUT_MODEL, ("tells of no model response", OF_MODELS)),
    "claude-agent-sdk": ("ends no tool that runs", {("timeout",): ""}),
}
"""By host: what it does not do, and the settings that limit nothing there."""

policy = Commands(no_args_is_help=True)


@policy.callback()
@examples(
    "guardrails policy check policy.yaml",
    "guardrails policy test policy.yaml cases.yaml",
    "guardrails policy schema -o policy.schema.json",
)
def _about() -> None:
    """
    Check policy files, test them by cases, show their chains, print their JSON Schema.
    """


Own = Annotated[
    list[str] | None, typer.Option("--guards", metavar="FILE", help="A Python file with guards of your own; it is run.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@policy.command()
@examples("guardrails policy check policy.yaml", "guardrails policy check default strict --json")
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Policy files, or names of shipped ones.")],
    own: Own = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="Refuse limits that this host cannot hold, such as mcp."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """
    Report every mistake of policy files, each as file:line:column. Exit code 1: there are mistakes.
    """
    if host is not None and host not in HOSTS:
        raise typer.BadParameter(f"`--host` takes one of {', '.join(sorted(HOSTS))}, not `{host}`")
    guards = own_guards(own or ())
    checked = [check_file(file, guards, host) for file in files]
    if as_json:
        print_json({"ok": not any(c.mistakes for c in checked), "files": [c.to_dict() for c in checked]})
    for found in () if as_json else checked:
        typer.echo(printable(str(found)), err=found.missing)
    if any(c.missing for c in checked):
        raise typer.Exit(USAGE)
    if any(c.mistakes for c in checked):
        raise typer.Exit(FOUND)


@policy.command()
@examples("guardrails policy schema", "guardrails policy schema -o policy.schema.json")
def schema(
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")] = None,
    own: Own = None,
) -> None:
    """
    Print the JSON Schema of policy files, for editors.
    """
    from guardrails.policy.policy import Policy

    text = json.dumps(Policy.schema(own_guards(own or ())), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    from guardrails.cli.text.outputs import write_whole

    write_whole(output, text)


@policy.command()
@examples("guardrails policy show default", "guardrails policy show policy.yaml --json")
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME_OR_FILE", help="A policy file, or the name of a shipped one."),
    ],
    own: Own = None,
    as_json: Json = False,
) -> None:
    """
    Print the chain of a policy in order.
    """
    loaded = load_policy(name, own_guards(own or ()))
    if as_json:
        print_json(chain_of(loaded))
    else:
        typer.echo(shown(loaded))


@policy.command("test")
@examples(
    "guardrails policy test",
    "guardrails policy test policy.yaml cases.yaml",
    "guardrails policy test policy.yaml -k refund",
)
def policy_test(
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="POLICY",
            help="A policy file, or the name of a shipped one. Without it all shipped policies are tested.",
        ),
    ] = None,
    cases: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CASES", help="Files of cases. Without one the policy's own cases are taken, found by its name."
        ),
    ] = None,
    *,
    only: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases with this in their name.")] = "",
    own: Own = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of case files instead.")] = False,
) -> None:
    """
    Hold a policy to its cases: sequences of calls, with the expected decision of each. Exit code 1: one fails.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.offline.policy_cases import find_cases, report, shipped_with_cases

    if schema:
        from guardrails.offline.policy_cases.steps import cases_schema

        print_json(cases_schema())
        return
    policies = shipped_with_cases() if policy is None else [policy]
    try:
        wanted = {name: cases or [_near(find_cases(name))] for name in policies}
    except PolicyError as error:
        fail(str(error))
    files = _loaded(dict.fromkeys(path for paths in wanted.values() for path in paths))
    guards = own_guards(own or ())
    suites = [_suite(name, guards, files[path], only) for name, paths in wanted.items() for path in paths]
    suites = [suite for suite in suites if suite.results]
    if not suites:
        fail(f"no case has `{only}` in its name")
    if as_json:
        print_json(report.to_dict(suites))
    else:
        typer.echo(printable("\n".join(report.lines(suites))))
    if any(suite.failed for suite in suites):
        raise typer.Exit(FOUND)


def _near(path: Path) -> Path:
    """
    Returns *path* as seen from the working directory if it lies below it, so that a build server can find it.
    """
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _loaded(paths: Iterable[Path]) -> "dict[Path, CaseFile]":
    """
    Returns the files of *paths*. Ends the command with the mistakes of all of them if there are any.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.offline.policy_cases import load_cases

    loaded: dict[Path, CaseFile] = {}
    mistakes: list[str] = []
    for path in paths:
        try:
            loaded[path] = load_cases(path)
        except PolicyError as error:
            mistakes += error.mistakes
        except OSError as error:
            fail(f"cannot read `{path}`: {error.strerror}")
    if mistakes:
        fail("\n".join(mistakes), FOUND)
    return loaded


def _suite(name: str, guards: "tuple[type[Guard], ...]", file: "CaseFile", only: str) -> "Suite":
    from guardrails.offline.policy_cases import run_case
    from guardrails.offline.policy_cases.report import Suite

    policy = load_policy(name, guards)
    if file.policy is not None and file.policy != Path(name).stem:
        typer.echo(printable(f"{file.name}: written for the policy `{file.policy}`, run by `{name}`"), err=True)
    chosen = [case for case in file.cases if only.casefold() in case.name.casefold()]
    return Suite(name, file.name, [run_case(policy, case) for case in chosen])


@dataclass(frozen=True, slots=True)
class Checked:
    """
    The findings in one policy file.
    """

    file: str
    guards: int | None = None
    """In its chain; None where there is none."""
    mistakes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    """Older words that still work, and what stands for them now."""
    missing: bool = False
    """There is no such file."""

    def __str__(self) -> str:
        found = self.mistakes or (f"{self.file}: ok, {plural(self.guards or 0, 'guard')}",)
        return "\n".join((*found, *self.hints))

    def to_dict(self) -> dict[str, Any]:
        """
        Returns the findings for another program, each mistake with its place if it has one.
        """
        return {
            "file": self.file,
            "ok": not self.mistakes,
            "guards": self.guards,
            "mistakes": [_placed(mistake) for mistake in self.mistakes],
            "hints": [_placed(hint) for hint in self.hints],
        }


def _placed(mistake: str) -> dict[str, Any]:
    found = _PLACED.match(mistake)
    if found is None:
        return {"file": None, "line": None, "column": None, "message": mistake.partition("\n")[0]}
    return {**found.groupdict(), "line": int(found["line"]), "column": int(found["column"])}


def own_guards(files: Iterable[str]) -> "tuple[type[Guard], ...]":
    """
    Returns the guards that Python *files* define; ends the command if one cannot be used.
    """
    return tuple(guard for file in files for guard in _guards_in(file))


def _guards_in(file: str) -> "Iterable[type[Guard]]":
    """
    The guards that a Python *file* defines, in their order. The file is run: it is to be one that is trusted.
    """
    from guardrails.core.guards.base import Guard

    name = f"guardrails_own_{Path(file).stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if not Path(file).is_file():
        fail(f"no file `{file}` with guards")
    if spec is None or spec.loader is None:
        fail(f"`{file}` is no Python file")
    # The types of its settings are looked up there.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001  whatever a person's own file raises
        fail(f"`{file}` cannot be run: {type(error).__name__}: {error}")
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name]
    guards = [each for each in found if issubclass(each, Guard)]
    if not guards:
        fail(f"`{file}` defines no guard: write `@guard` above a `class Mine(Guard)`")
    return guards


def check_file(file: str, own: "tuple[type[Guard], ...]" = (), host: str | None = None) -> Checked:
    """
    All that is wrong with the policy *file*, or with the shipped policy of that name, in *host*; *own* are a person's own guards.
    """
    from guardrails.core.values.errors import PolicyError
    from guardrails.policy.document import Document
    from guardrails.policy.file import find
    from guardrails.policy.policy import Policy

    try:
        find(file)
    except PolicyError as error:
        return Checked(file, mistakes=tuple(error.mistakes), missing=True)
    try:
        document = Document(file, own)
        policy = Policy(**document.arguments())
        mistakes, hints = tuple(_lacking(policy, document, host)), tuple(document.older_words())
        return Checked(file, guards=len(policy.chain), mistakes=mistakes, hints=hints)
    except PolicyError as error:
        # What is found after the file was read has no place in it.
        told = (one if _PLACED.match(one) else f"{file}: {one}" for one in error.mistakes)
        return Checked(file, mistakes=tuple(told))


def chain_of(policy: "Policy") -> dict[str, Any]:
    """
    A policy for another program: its guards in order, with the settings that are not the default.
    """
    chain = policy.chain
    return {
        "name": policy.name,
        "mode": chain.mode,
        **({} if policy.stop is None else {"stop": policy.stop.values["reason"]}),
        "on_error": chain.on_error,
        "envelope": chain.form or "nested",
        "guards": [{"guard": guard.name, **guard.settings()} for guard in chain],
        "tools": [
            {
                "match": list(rule.match),
                **rule.declared,
                **({"mode": rule.mode} if rule.mode else {}),
                **({"on_error": rule.on_error} if rule.on_error else {}),
                **rule.guards,
            }
            for rule in chain.rules
        ],
        "scopes": {
            scope: [{"guard": guard.name, **guard.settings()} for guard in own] for scope, own in policy.scopes.items()
        },
        "prices": {
            model: {"input_mtok": price.input_mtok, "output_mtok": price.output_mtok}
            for model, price in policy.prices.items()
        },
    }


def shown(policy: "Policy") -> str:
    """
    A policy as a person reads it: its guards in order, then what it says of single tools.
    """
    said = chain_of(policy)
    head = f"{policy.name}: {said['mode']}, {policy.chain.on_error} on a guard's error, {said['envelope']} envelopes"
    lines = [f"stopped, so that every call is refused: {said['stop']}"] if "stop" in said else []
    lines += str(policy.chain).splitlines()
    for rule in said["tools"]:
        match = ", ".join(rule.pop("match"))
        settings = ", ".join(f"{key}={value!r}" for key, value in rule.items())
        lines.append(f"tools with {settings}: {match}")
    for scope, own in policy.scopes.items():
        lines += [f"scope {scope}: {guard}" for guard in own]
    lines += [f"price of {m}: ${p['input_mtok']:g} / ${p['output_mtok']:g} per Mtok" for m, p in said["prices"].items()]
    return "\n".join(
        [paragraph(head, hanging="  "), *(paragraph(line, indent="  ", hanging="      ") for line in lines)]
    )


def _lacking(policy: "Policy", document: "Document", host: str | None = None) -> list[str]:
    """
    Returns the things that *policy*, made of *document*, needs and does not find, and the limits that *host* cannot
    hold, as mistakes of the file.
    """
    from guardrails.policy.file import Mistake, shipped

    said = []
    for place, message in (*_packages(policy), *_models(policy), *_not_held(policy, host)):
        position = _position(document.root, place)
        if position and Path(position.source.name).parent == shipped() and message.startswith(f"`{host}`"):
            # A shipped policy is for all hosts; the limits that a person wrote are wanted.
            continue
        told = f"{'.'.join(map(str, place))}: {message}"
        said.append(told if position is None else str(Mistake(position, told)))
    return said


def _packages(policy: "Policy") -> Iterator[tuple[Place, str]]:
    from guardrails.core.guards.budget import Budget

    if policy.prices or find_spec("genai_prices") is not None:
        return
    for place, guard in _guards_of(policy):
        if isinstance(guard, Budget) and guard.max_cost_usd is not None and guard.on_unpriced == "deny":
            yield (*place, Budget.name, "max_cost_usd"), NO_PRICES


def _guards_of(policy: "Policy") -> "Iterator[tuple[Place, Guard]]":
    for guard in policy.chain.guards:
        yield (), guard
    for name, guards in policy.scopes.items():
        yield from ((("scopes", name), guard) for guard in guards)


def _not_held(policy: "Policy", host: str | None) -> Iterator[tuple[Place, str]]:
    """
    Settings that limit nothing in *host*: what a limit counts is told by nobody there, or declared by no tool.
    """
    lacks, limits = NOT_HELD.get(host or "", ("", {}))
    rules = policy.chain.rules
    declared = {key for rule in rules for key in rule.declared}
    said: list[tuple[Place, Any]] = [((*place, guard.name), guard.settings()) for place, guard in _guards_of(policy)]
    for number, rule in enumerate(rules):
        said += [
            (("tools", number), rule.declared),
            *((("tools", number, name), own) for name, own in rule.guards.items()),
        ]
    for place, settings in said:
        for limit, by in limits.items():
            if (
                (*place, *limit[-1:])[-len(limit) :] == limit
                and settings.get(limit[-1]) is not None
                and by not in declared
            ):
                hint = f", and no tool declares `{by}`" if by else ""
                yield (*place, limit[-1]), f"`{host}` {lacks}, so that this limits nothing there{hint}"


def _models(policy: "Policy") -> Iterator[tuple[Place, str]]:
    """
    Model files that are no good. One that is not there yet is none.
    """
    from guardrails.core.guards.loop_score import LoopScore
    from guardrails.core.guards.retryable import Retryable
    from guardrails.core.values.errors import ModelError
    from guardrails.policy.models import read_model

    for cls in (Retryable, LoopScore):
        named: list[tuple[Place, str | None]] = [
            ((cls.name, "model"), guard.retry_model) for guard in policy.chain.guards if isinstance(guard, cls)
        ]
        for at, rule in enumerate(policy.chain.rules):
            named.append((("tools", at, cls.name, "model"), rule.guards.get(cls.name, {}).get("model")))
        for place, path in named:
            if path is None:
                continue
            try:
                read_model(path, cls.model_kind)
            except FileNotFoundError:
                pass
            except ModelError as error:
                yield place, f"the model `{path}` cannot be used: {error}"
            except OSError as error:
                yield place, f"the model `{path}` cannot be read: {error.strerror or error}"


def _position(node: "Node | None", place: Place) -> "Position | None":
    """
    Returns the place of the last key of *place* that the file has; None if it has none of them.
    """
    from guardrails.policy.file import inner

    found = [below.named for depth in range(len(place)) if (below := inner(node, *place[: depth + 1])) is not None]
    return found[-1] if found else None
