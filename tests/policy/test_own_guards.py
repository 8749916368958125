"""
A person's own guards in a policy file: what a guard of the library can do there, they can.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest

from annotated_types import Ge

from guardrails import Denial, Envelope, Guard, Policy, PolicyError, guard
from guardrails.core.guards.base import Keys, map_of
from guardrails.core.values.errors import ModelError
from guardrails.core.values.units import Duration
from tests.tables import table


try:
    from typing_extensions import TypedDict
except ImportError:
    from typing import TypedDict


class Hours(TypedDict, total=False):
    first: Annotated[int, Ge(0)]
    last: Annotated[int, Ge(0)]


@guard
class Office(Guard):
    """
    A guard with a map, a file, an alias, settings that go together, and one that a scope may not have.
    """

    aliases: ClassVar[dict[str, str]] = {"pause": "rest"}
    scope_settings: ClassVar[tuple[str, ...] | None] = ("mode", "hours")
    files: ClassVar[tuple[str, ...]] = ("holidays",)

    hours: Annotated[Hours, Keys()] = map_of(first=9, last=17)
    rest: Duration = 0.0
    holidays: str | None = None

    @property
    def remembers(self) -> int:
        return self.hours["last"] * 10

    @property
    def result_bytes(self) -> int:
        return 1_000 + self.hours["first"]

    @classmethod
    def check_settings(cls, settings: Any) -> None:
        hours = {"first": 9, "last": 17, **settings.get("hours", {})}
        if hours["first"] >= hours["last"]:
            raise ValueError("the office closes before it opens")

    def prepare(self) -> None:
        if self.holidays is not None and not Path(self.holidays).exists():
            raise ModelError(f"no file `{Path(self.holidays).name}`")

    def check(self, call: Any, state: Any, mine: Any, facts: Any) -> Denial | None:
        hour = facts.now_ms // 3_600_000 % 24
        return (
            None if self.hours["first"] <= hour < self.hours["last"] else Denial(code="office.hours", message="Closed.")
        )

    def edges(self, state: Any, mine: Any, now_ms: int) -> tuple[()]:
        return ()


@guard
class Seal(Guard):
    """
    A guard of results, for single tools only.
    """

    word: str = "sealed"

    def shape(self, envelope: Envelope, call: Any, outcome: Any, state: Any, mine: Any, facts: Any) -> Envelope:
        envelope.nudge(self.word)
        return envelope


def load(folder: Path, text: str, *guards: Any) -> Policy:
    (folder / "policy.yaml").write_text("version: 1\n" + text)
    return Policy.load(folder / "policy.yaml", guards=guards)


def mistakes(folder: Path, text: str, *guards: Any) -> list[str]:
    with pytest.raises(PolicyError) as raised:
        load(folder, text, *guards)
    return [mistake.splitlines()[0].removeprefix(f"{folder / 'policy.yaml'}:") for mistake in raised.value.mistakes]


def test_a_class_stands_in_the_chain_only_where_the_file_has_its_key(tmp_path: Path) -> None:
    assert list(load(tmp_path, "office: {hours: {first: 8}, pause: 30m}", Office).chain.guards) == [
        Office(hours={"first": 8}, rest=1800.0)
    ]
    assert list(load(tmp_path, "budget: {}", Office).chain.guards) == list(load(tmp_path, "budget: {}").chain.guards)


def test_it_stands_before_the_guard_that_bounds_what_all_say(tmp_path: Path) -> None:
    chain = load(tmp_path, "truncate: {}\noffice: {}\nsummary: {}", Office).chain
    assert [guard.name for guard in chain.guards] == ["summary", "office", "truncate"]


def test_a_rule_lays_its_settings_upon_the_guard_given_made_or_by_class(tmp_path: Path) -> None:
    text = (
        "tools:\n  - {match: a, office: {hours: {first: 7}}}\n  - {match: '*', office: {hours: {last: 20, first: 1}}}"
    )
    for given in (Office(rest=3.0), Office):
        chain = load(tmp_path, text, given).chain
        rest = 3.0 if isinstance(given, Office) else 0.0
        assert chain.plan("a").guards == (Office(hours={"first": 7, "last": 20}, rest=rest),)
        assert chain.plan("b").guards == (Office(hours={"first": 1, "last": 20}, rest=rest),)


def test_what_it_asks_of_the_library_is_heard_of_rules_too(tmp_path: Path) -> None:
    chain = load(tmp_path, "tools:\n  - {match: a, office: {hours: {last: 23}}}", Office).chain
    assert chain.window == 230
    assert (chain.plan("a").max_bytes, chain.plan("b").max_bytes > 1 << 40) == (1_009, True)


@table(
    ("text", "given", "said"),
    [
        ("office: {hours: {first: -1}}", Office, "2:25: office.hours.first: must be at least 0, got `-1`"),
        ("office: {hours: {first: 20}}", Office, "2:9: office: the office closes before it opens"),
        ("office: {pause: 8, rest: 9}", Office, "2:9: office: `rest` is given twice, once as `pause`"),
        (
            "tools: [{match: a, office: {rest: 8, pause: 9}}]",
            Office,
            "2:28: tools.0.office: `rest` is given twice, once as `pause`",
        ),
        ("offices: {}", Office, "2:1: unknown key `offices`, did you mean `office`?"),
        ("office: {}", Office(), "`office` is given twice"),
        ("scopes: {user: {office: {rest: 3}}}", Office, "2:26: unknown key `rest`, known here: `mode`, `hours`"),
        ("scopes: {user: {seal: {}}}", Seal, "2:17: unknown key `seal`"),
        ("office: {holidays: none.txt}", Office, "office: no file `none.txt`"),
        ("tools:\n  - {match: a, office: {holidays: none.txt}}", Office, "3:24: tools.0.office: no file `none.txt`"),
        *(
            (written, Office, f"{place}: {where}office: the office closes before it opens")
            for written, place, where in (
                ("tools: [{match: x, office: {hours: {first: 18}}}]", "2:28", "tools.0."),
                (
                    "office: {hours: {first: 3}}\ntools:\n  - match: x\n    office: {hours: {last: 2}}",
                    "5:13",
                    "tools.0.",
                ),
                ("scopes:\n  user:\n    office: {hours: {first: 18}}", "4:13", "scopes.user."),
                ("tools:\n  - match: x\n    office:\n      hours: {first: 18}", "4:5", "tools.0."),
            )
        ),
    ],
)
def test_its_mistakes_are_told_as_those_of_the_library_are(text: str, given: Any, said: str, tmp_path: Path) -> None:
    told = mistakes(tmp_path, text, given)
    assert [mistake.startswith(said) for mistake in told] == [True], told


def test_a_file_that_it_names_is_looked_for_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "days.txt").write_text("1 May")
    text = "office: {holidays: days.txt}\ntools:\n  - {match: a, office: {holidays: days.txt}}"
    [made] = load(tmp_path, text, Office).chain.guards
    assert isinstance(made, Office)
    assert made.holidays == str(tmp_path / "days.txt")
