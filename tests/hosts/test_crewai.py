"""
crewai's agents and crews behind the guards: the contract, and what is its alone.
"""

import pytest


pytest.importorskip("crewai")

from .contract import Contract
from .crewai.crews import Crews
from .crewai.driver import CrewAI
from .crewai.page import Page
from .crewai.runs import Runs
from .crewai.tools import Tools


# What the host warns of itself: it reads its own deprecated fields.
pytestmark = pytest.mark.filterwarnings(
    "ignore:(deprecated$|[a-z_]+ is deprecated and will be removed):DeprecationWarning"
)


class TestCrewAI(Contract):
    driver = CrewAI


class TestRuns(Runs):
    pass


class TestCrews(Crews):
    pass


class TestTools(Tools):
    pass


class TestPage(Page):
    pass
