"""
What the tests of telemetry share: an SDK whose spans and metrics stay in memory.
"""

import pytest

from tests.otel.seen import Seen


@pytest.fixture
def seen() -> Seen:
    return Seen()
