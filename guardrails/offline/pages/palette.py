"""
One colour and one letter to each code, so that no colour has to be told from another.

The colours are those of Okabe and Ito (Color Universal Design, 2008) and two of Paul Tol's muted scheme. Vermillion and
bluish green are kept for wrong and right.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .markup import Markup, named, tag
from .numbers import count


COLOURS: Final = ("#0072b2", "#e69f00", "#56b4e9", "#cc79a7", "#f0e442", "#882255", "#44aa99")
LETTERS: Final = "ABCDEFG"
OTHER: Final = len(COLOURS)
OTHER_COLOUR: Final = "#8c8c8c"
OTHER_LETTER: Final = "+"
DARK: Final = frozenset({0, 5})
"""Slots whose letter is white."""
OTHER_CODES: Final = "other codes"


class Palette(NamedTuple):
    """
    The slots of the codes with the most calls; all others share the last.
    """

    slots: dict[str, int]

    def slot(self, code: str) -> int:
        """
        Returns the colour of *code*.
        """
        return self.slots.get(code, OTHER)

    def css(self, code: str) -> str:
        """
        Returns the class of *code*.
        """
        return f"k{self.slot(code)}"

    def by_slot(self, codes: Mapping[str, int]) -> list[tuple[int, str, int]]:
        """
        Returns (slot, code, calls) in the order of the slots; codes without a colour of their own are one.
        """
        sums: dict[int, int] = {}
        for code, n in codes.items():
            slot = self.slot(code)
            sums[slot] = sums.get(slot, 0) + n
        names = {slot: code for code, slot in self.slots.items()}
        return [(slot, names.get(slot, OTHER_CODES), sums[slot]) for slot in sorted(sums) if sums[slot]]


def palette(codes: Mapping[str, int]) -> Palette:
    """
    Colours for *codes*, the ones with the most calls first.
    """
    order = sorted(codes, key=lambda code: (-codes[code], code))
    return Palette({code: slot for slot, code in enumerate(order[:OTHER])})


def swatch(css: str) -> Markup:
    """
    Returns one coloured cell.
    """
    return tag("i", class_=css, aria_hidden="true")


def legend(colours: Palette, per_side: Sequence[Mapping[str, int]]) -> Markup:
    """
    Letter, name and calls of each code that stopped something.
    """
    shown: dict[int, tuple[str, list[int]]] = {}
    for n, codes in enumerate(per_side):
        for slot, code, calls in colours.by_slot(codes):
            shown.setdefault(slot, (code, [0] * len(per_side)))[1][n] = calls
    return tag(
        "ul",
        *(
            tag("li", swatch(f"k{slot}"), named(code), " ", tag("small", " / ".join(map(count, calls))))
            for slot, (code, calls) in sorted(shown.items())
        ),
        class_="legend",
    )


def css() -> str:
    """
    Returns the rules of all slots.
    """
    colours = (*COLOURS, OTHER_COLOUR)
    letters = LETTERS + OTHER_LETTER
    return "".join(
        f".k{slot}{{--k:{colour};background:{colour};fill:{colour};color:{'#fff' if slot in DARK else '#000'}}}"
        f'.k{slot}::before{{content:"{letters[slot]}"}}'
        for slot, colour in enumerate(colours)
    )
