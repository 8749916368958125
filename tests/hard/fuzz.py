"""
Coverage-guided fuzzing of a call's arguments: python -m tests.hard.fuzz [-runs=N]

Needs `atheris`, which the target installs where it can.
"""

import random
import sys

import atheris


with atheris.instrument_imports(include=["guardrails"]):
    from tests.hard import odd_values


def one(data: bytes) -> None:
    """
    The bytes choose what the call is given: JSON text as a model writes it, raw bytes, or values drawn from a seed.
    """
    provider = atheris.FuzzedDataProvider(data)
    kind = provider.ConsumeIntInRange(0, 3)
    seed = random.Random(provider.ConsumeInt(4))
    rest = provider.ConsumeUnicode(400) if kind < 2 else provider.ConsumeBytes(400)
    given = (
        {"city": rest, "more": odd_values.value(seed)}
        if kind == 1
        else rest
        if kind != 3
        else odd_values.arguments(seed)
    )
    odd_values.hold(given, odd_values.value(seed))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
