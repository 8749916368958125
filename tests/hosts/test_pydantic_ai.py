"""
pydantic-ai's `Agent` behind the guards: the contract, and what is its alone.
"""

from collections.abc import Mapping
from typing import ClassVar

import pytest


pytest.importorskip("pydantic_ai")

from .contract import Contract
from .pydantic_ai.driver import PydanticAI
from .pydantic_ai.ends import Ends
from .pydantic_ai.later import Later
from .pydantic_ai.page import Page
from .pydantic_ai.tools import Tools


class Host(PydanticAI):
    cannot: ClassVar[Mapping[str, str]] = {}


class TestPydanticAI(Contract):
    driver = Host


class TestEnds(Ends):
    pass


class TestLater(Later):
    pass


class TestPage(Page):
    pass


class TestTools(Tools):
    pass
