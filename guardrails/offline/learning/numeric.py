"""
numpy for the modules that learn: of the extra `train`, imported on first use.
"""

from guardrails.core.values.errors import needs


with needs("train", "training"):
    import numpy as np

__all__ = ["np"]
