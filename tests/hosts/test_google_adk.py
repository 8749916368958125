"""
google-adk's agents behind the guards: the contract, and what is its alone.
"""

from collections.abc import Mapping
from typing import ClassVar

import pytest


pytest.importorskip("google.adk")

from .contract import Contract
from .google_adk import driver
from .google_adk.agents import Agents
from .google_adk.later import Later
from .google_adk.live import Live
from .google_adk.page import Page
from .google_adk.tools import Tools


# `AgentTool` makes its runner in a form that the host itself has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")


class Driver(driver.Driver):
    cannot: ClassVar[Mapping[str, str]] = {
        "test_arguments_that_are_no_json_are_told_of_and_the_run_goes_on": (
            "a call's arguments are a dict, so that text that is no JSON is no call. The model's client raises before any "
            "callback hears of it (google/genai/types.py:1844, google/adk/models/lite_llm.py:223)"
        ),
    }


class TestGoogleAdk(Contract):
    driver = Driver


class TestAgents(Agents):
    pass


class TestLater(Later):
    pass


class TestLive(Live):
    pass


class TestPage(Page):
    pass


class TestTools(Tools):
    pass
