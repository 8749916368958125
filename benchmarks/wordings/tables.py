"""
The tables of the page, drawn from the cells.
"""

from collections.abc import Sequence
from typing import Final

from .figures import Cell
from .wordings import COLUMNS, FIELDS, NOTHING, SHIPPED, TEXT


ALL: Final = "all"


def tables(cells: Sequence[Cell]) -> str:
    """
    Returns the shares, what is clear of them, and the words, as Markdown.
    """
    scenes = {cell.scene: cell.wanted for cell in cells}
    found = {(cell.scene, cell.wording): cell for cell in cells}
    shares = [["scene", "obeyed is", *COLUMNS]]
    for scene, wanted in scenes.items():
        row = [_share(found.get((scene, wording)), found.get((scene, SHIPPED))) for wording in COLUMNS]
        shares.append([scene, wanted, *row])
    if len(scenes) > 1:
        pooled = _pooled(cells, len(scenes))
        shares.append([ALL, "", *(_share(pooled.get(wording), pooled.get(SHIPPED)) for wording in COLUMNS)])
    words = [["scene", "wording", "words"]]
    # The others say the words of the shipped one, or none.
    own = [cell for cell in cells if cell.wording not in (FIELDS, TEXT)]
    words += [[cell.scene, cell.wording, f"`` {cell.words} ``".replace("|", "\\|")] for cell in own]
    clear = [line for scene in scenes for line in _clear([cell for cell in cells if cell.scene == scene])]
    drawn = "\n".join(clear) or "* No wording is clearly more or less obeyed than the shipped one."
    return f"{_drawn(shares)}\n{drawn}\n\n{_drawn(words)}"


def _pooled(cells: Sequence[Cell], scenes: int) -> dict[str, Cell]:
    """
    Returns the cells of all *scenes* as one, for each wording that every scene has.
    """
    made = {}
    for wording in COLUMNS:
        own = [cell for cell in cells if cell.wording == wording]
        if len(own) == scenes:
            obeyed, asked = sum(cell.obeyed for cell in own), sum(cell.asked for cell in own)
            made[wording] = own[0]._replace(scene=ALL, obeyed=obeyed, asked=asked)
    return made


def _share(cell: Cell | None, shipped: Cell | None) -> str:
    if cell is None:
        return ""
    low, high = cell.interval
    said = f"{100 * cell.obeyed / cell.asked:.0f} % ({100 * low:.0f} to {100 * high:.0f})"
    return f"**{said}**" if shipped is not None and cell.clear_of(shipped) else said


def _clear(cells: Sequence[Cell]) -> list[str]:
    """
    Returns what is clear of a scene: the wordings of which the interval lies beside that of the shipped one.
    """
    by = {cell.wording: cell for cell in cells}
    shipped = by.get(SHIPPED)
    if shipped is None:
        return []
    said = []
    for cell in cells:
        if cell is not shipped and cell.clear_of(shipped):
            more = cell.obeyed * shipped.asked > shipped.obeyed * cell.asked
            than = "more" if more else "less"
            named = "without the library" if cell.wording == NOTHING else f"with “{cell.wording}”"
            said.append(f"* {cell.scene[0].upper()}{cell.scene[1:]}: {than} {named} than with the shipped words.")
    return said


def _drawn(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = ["| " + " | ".join(row) + " |\n" for row in rows]
    return head + "|" + "---|" * len(rows[0]) + "\n" + "".join(rest)
