"""
The feature specification of a file, and the one that is shipped.
"""

from functools import cache
from pathlib import Path
from typing import Final

from guardrails.core.retries.spec import FeatureSpec


SHIPPED: Final = Path(__file__).parents[1] / "core" / "retries" / "features.json"


def load_spec(path: Path) -> FeatureSpec:
    """
    Returns the specification in the file *path*. Raises OSError, and FeatureSpecError if the specification is not
    valid.
    """
    return FeatureSpec.parse(path.read_bytes())


@cache
def shipped_spec() -> FeatureSpec:
    """
    Returns the specification that the library records and trains by unless told otherwise.
    """
    return load_spec(SHIPPED)
