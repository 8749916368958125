"""
More stories, of times: who looks again at once, and who looks again later. Each loop has its honest twin, which differs in its
pauses, or in what was once seen to change by itself.
"""

from typing import Final

from benchmarks.loops.stories import Call, Story, each


HOUR: Final = 3_600.0
DAY: Final = 24 * HOUR


def apart(seconds: float, *calls: Call) -> Story:
    """
    One call a turn, *seconds* from each to the next.
    """
    return [part for call in calls for part in (seconds, [call])]


INBOX: Final[Call] = ("search_mail", {"query": "is:unread", "box": "inbox"}, [])
PRICE: Final[Call] = ("get_price", {"of": "ACME"}, {"price": 108.5})
BEFORE: Final[Call] = ("get_price", {"of": "ACME"}, {"price": 107.9})
LOG: Final[Call] = ("read_file", {"path": "server.log"}, "started\nlistening\n")
FILE: Final[Call] = ("read_file", {"path": "notes.md"}, "# Notes\nCall Bo.")
MISSING: Final[Call] = ("read_file", {"path": "export.csv"}, FileNotFoundError("no such file: export.csv"))
NEUTRAL: Final[Call] = ("alpha", {"of": 1}, "v1")
BUILD: Final[tuple[Call, Call]] = (("sync_folder", {"of": "in"}, "ok"), ("list_files", {"of": "in"}, ["a", "b"]))
LATE: Final[list[Call]] = [
    ("get_order", {"id": f"A{7919 * n}"}, LookupError(f"no such order: A{7919 * n}")) for n in range(1, 9)
]

LOOPS: Final[dict[str, Story]] = {
    "an inbox, every 5 s": apart(5, *[INBOX] * 8),
    "a price, every 10 s": apart(10, *[PRICE] * 8),
    "a log, every 20 s": apart(20, *[LOG] * 8),
    "a file, three times in a minute": apart(15, *[FILE] * 5),
    "a tool of any name, every 30 s": apart(30, *[NEUTRAL] * 8),
    "a file that is not there, at once": apart(1, *[MISSING] * 3),
    "synchronised in vain, every 5 s": apart(5, *[call for _ in range(6) for call in BUILD]),
    "orders guessed, every 10 s": apart(10, *LATE),
    "a price that never moved, every 15 s": apart(15, *[PRICE] * 6),
    "a file the next day, then again and again": [*apart(2, FILE, FILE), DAY, [FILE], *apart(2, *[FILE] * 3)],
    "two logs by turns, every 10 s": apart(10, *[LOG, FILE] * 6),
}

HONEST: Final[dict[str, Story]] = {
    "an inbox, every 5 minutes": apart(300, *[INBOX] * 8),
    "a price, every 2 minutes": apart(120, *[PRICE] * 8),
    "a log, every 3 minutes": apart(180, *[LOG] * 8),
    "a file, twice, and once more a day later": [*apart(15, FILE, FILE), DAY, [FILE]],
    "a tool of any name, every half hour": apart(HOUR / 2, *[NEUTRAL] * 8),
    "a file that is not there yet, each hour": apart(HOUR, *[MISSING] * 3),
    "synchronised every 10 minutes": [part for _ in range(6) for part in (600.0, [BUILD[0]], 2.0, [BUILD[1]])],
    "orders asked for as they come, every 10 minutes": apart(600, *LATE),
    "a price that moved once, every 15 s": [*each(BEFORE), *apart(15, *[PRICE] * 5)],
    "a file, day after day": apart(DAY, *[FILE] * 5),
    "two logs by turns, every 5 minutes": apart(150, *[LOG, FILE] * 6),
}
