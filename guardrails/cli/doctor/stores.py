"""
Stores: whether one opens, and which versions of states it keeps.
"""

from collections import Counter
from pathlib import Path
from typing import Any


def look(place: str, namespace: str) -> dict[str, Any]:
    """
    Returns the contents of the store at *place*, a file or a URL. Nothing is changed. `problem` and `next` say why it is broken.
    """
    from guardrails.core.values.errors import GuardrailsError
    from guardrails.stores.opened import store_at
    from guardrails.stores.places import is_url, shown_place

    found: dict[str, Any] = {"store": shown_place(place), "opens": False, "states": 0, "versions": {}, "unreadable": 0}
    found |= {"problem": None, "next": None}
    if not is_url(place) and not Path(place).is_file():
        why = "is a folder" if Path(place).is_dir() else "is not there"
        return found | {
            "problem": f"`{place}` {why}",
            "next": "name the file of a SqliteStore, or the URL of a RedisStore",
        }
    try:
        store = store_at(place, namespace=namespace)
        try:
            found |= {"opens": True, **_counted(store)}
        finally:
            store.close()
    except (GuardrailsError, OSError) as error:
        return found | {"problem": str(error), "next": f"guardrails store ls {shown_place(place)} tries it again"}
    if found["unreadable"]:
        many = "1 state" if found["unreadable"] == 1 else f"{found['unreadable']:,} states"
        return found | {
            "problem": f"{many} of `{found['store']}` cannot be read by this version",
            "next": f"guardrails store ls {found['store']} lists why",
        }
    return found


def _counted(store: Any) -> dict[str, Any]:
    from guardrails.cli.store.shown import line_of

    versions: Counter[int | None] = Counter()
    kinds: Counter[str] = Counter()
    unreadable = 0
    for one in store.entries():
        line = line_of(one, one.changed_ms, {})
        versions[line["version"]] += 1
        kinds[line["kind"]] += 1
        unreadable += bool(line["unreadable"])
    return {
        "states": versions.total(),
        "kinds": dict(kinds),
        "versions": {str(version): count for version, count in sorted(versions.items(), key=str)},
        "unreadable": unreadable,
    }
