"""
More stories, of failures: who guesses on, and who goes on with what a result has shown.
"""

from typing import Final

from benchmarks.loops.stories import NAMES, Story, each, pairs


REQUIRED: Final = ("file", "ranges", "start", "end", "encoding")
REASONS: Final = ("too many of them", "another version of it", "not a part of it", "the wrong end of it")

LOOPS: Final[dict[str, Story]] = {
    "orders guessed, and looks between that are not used": pairs(
        *(
            (
                ("get_order", {"id": f"#A{731 * n}"}, LookupError(f"no order #A{731 * n}")),
                ("find_user", {"name": name}, {"orders": ["#W71", "#W72"]}),
            )
            for n, name in enumerate(NAMES, 1)
        )
    ),
    "one error in JSON, with the argument": each(
        *(
            ("get_page", {"title": name}, ValueError(f'{{"error": "there is no such page", "title": "{name}"}}'))
            for name in NAMES
        )
    ),
    "skills guessed": each(*(("skill", {"run": name}, RuntimeError(f"Unknown skill: {name}")) for name in NAMES)),
}

HONEST: Final[dict[str, Story]] = {
    "columns guessed, then those of the schema": each(
        *(("run_sql", {"show": name, "of": "users"}, ValueError(f"no column `{name}`")) for name in NAMES[:3]),
        ("describe_table", {"of": "users"}, {"columns": ["person_no", "full_name", "joined_on", "left_on"]}),
        *(
            ("run_sql", {"show": name, "of": "users"}, ValueError(f"no column `{name}`"))
            for name in ("person_no", "full_name", "joined_on")
        ),
        ("run_sql", {"show": "left_on", "of": "users"}, [["2026"]]),
    ),
    "what each error asks for, one after the other": each(
        *(
            (
                "read_part",
                dict.fromkeys(REQUIRED[:n], 31),
                TypeError(f"validation error: '{name}' is a required property"),
            )
            for n, name in enumerate(REQUIRED)
        ),
        ("read_part", dict.fromkeys(REQUIRED, 31), "text"),
    ),
    "failures of several kinds in JSON": each(
        *(
            ("ask_service", {"for": name}, ValueError(f'{{"error": "", "response": "{reason}"}}'))
            for name, reason in zip(NAMES, REASONS, strict=False)
        )
    ),
}
