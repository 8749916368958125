"""
pydantic-ai's `Agent` behind the guards: the contract, and what is its alone.
"""

import pytest


pytest.importorskip("pydantic_ai")

from .contract import Contract
from .pydantic_ai.driver import PydanticAI
from .pydantic_ai.ends import Ends
from .pydantic_ai.later import Later
from .pydantic_ai.page import Page
from .pydantic_ai.tools import Tools


class TestPydanticAI(Contract):
    driver = PydanticAI


class TestEnds(Ends):
    pass


class TestLater(Later):
    pass


class TestPage(Page):
    pass


class TestTools(Tools):
    pass
