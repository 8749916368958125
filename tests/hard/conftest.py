"""
How hard to try: `python3 dev.py hard` takes the long form of these tests, the gate the short one.
"""

import os

import pytest


@pytest.fixture(scope="session")
def long() -> bool:
    return os.environ.get("GUARDRAILS_HARD") == "long"
