"""
What every host owes: behaviours that hold for its adapter, with its real package and a scripted model.

`tests/hosts/test_NAME.py` has `class TestNAME(Contract)` with a `driver`: a class, or a function, that makes one. It is made
anew for each test. What the host's own source makes impossible stands in `driver.cannot`, and is an expected failure.
"""

from .behaviours.calls import Calls
from .behaviours.ends import Ends
from .behaviours.loops import Loops
from .behaviours.pages import Pages
from .behaviours.pauses import Pauses
from .behaviours.sessions import Sessions


__all__ = ["Contract", "Pages"]


class Contract(Loops, Calls, Ends, Sessions, Pauses):
    """
    All of them.
    """
