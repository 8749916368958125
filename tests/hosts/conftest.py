"""
The contract of the hosts says what it found where a behaviour does not hold, as a test does.
"""

import pytest


pytest.register_assert_rewrite("tests.hosts.behaviours", "tests.hosts.pydantic_ai", "tests.hosts.crewai")
