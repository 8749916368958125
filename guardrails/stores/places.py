"""
Names of stores on a command line: a file of SQLite, or the URL of a server of Redis or PostgreSQL.
"""

import os


def is_url(place: str) -> bool:
    """
    Returns whether *place* is a URL (`redis://`, `rediss://`, `unix://`, `postgresql://`), else the path of a file.
    """
    return "://" in place


def whole_place(place: str) -> str:
    """
    Returns *place* as it means the same in every working directory.
    """
    return place if is_url(place) else os.path.abspath(place)  # noqa: PTH100  pathlib takes 5 ms


def shown_place(place: str) -> str:
    """
    Returns *place* without the secrets of a URL: user, password, options.
    """
    scheme, url, rest = place.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}" if url else place
