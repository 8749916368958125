"""
numpy, for what learns: of the extra `train`, imported where it is used.
"""

from guardrails.core.values.errors import needs


with needs("train", "training"):
    import numpy as np

__all__ = ["np"]
