"""
google-adk's agents behind the guards.
"""

import pytest


pytest.importorskip("google.adk")

from .contract import Contract
from .google_adk.driver import Driver


class TestGoogleAdk(Contract):
    driver = Driver
