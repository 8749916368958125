"""
Writes the model that is shipped: `python -m guardrails.offline.learning.cold`, after a change of the beliefs or the features.
"""

from guardrails.policy.models import COLD, shipped_spec

from .candidate import cold_model
from .train import write


def main() -> None:
    """
    Fit the beliefs again, and write the model where the library looks for it.
    """
    write(COLD, cold_model(shipped_spec()).text)


if __name__ == "__main__":
    main()
