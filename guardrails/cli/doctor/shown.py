"""
The text of `guardrails doctor` about the installation and stores.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from guardrails.cli.text.printing import paragraph
from guardrails.core.values.errors import install


if TYPE_CHECKING:
    from .packages import Package


def installation_lines(
    versions: dict[str, Any], packages: "dict[str, list[Package]]", stores: list[dict[str, Any]]
) -> Iterator[str]:
    """
    Versions, extras and *stores*, a paragraph for each.
    """
    yield paragraph(
        f"guardrails {versions['library']} on Python {versions['python']}, in `{versions['folder']}`", hanging="  "
    )
    yield paragraph(
        f"It reads and writes states of version {versions['state']}, store files {versions['store_file']}, "
        f"records {versions['records']}, retry models {versions['retry_model']}.",
        hanging="  ",
    )
    extras = {extra: ones for extra, ones in packages.items() if extra}
    yield ""
    if not extras:
        yield paragraph("extras: not known, since this is a checkout that was not installed", hanging="  ")
    else:
        there = [extra for extra, ones in extras.items() if all(one.in_range for one in ones)]
        lacking = [extra for extra in extras if extra not in there]
        yield paragraph(f"extras that are installed: {', '.join(there) or 'none'}", hanging="  ")
        if lacking:
            say = f"extras that are not: {', '.join(lacking)}; for example {install(lacking[0])}"
            yield paragraph(say, hanging="  ")
    for one in stores:
        yield ""
        yield paragraph(f"store {one['store']}: {_kept(one)}", hanging="  ")


def _kept(one: dict[str, Any]) -> str:
    if not one["opens"]:
        return "does not open"
    many = "1 state" if one["states"] == 1 else f"{one['states']:,} states"
    by_version = ", ".join(f"{count:,} of version {version}" for version, count in one["versions"].items())
    return f"opens, and keeps {many}" + (f": {by_version}" if by_version else "")
