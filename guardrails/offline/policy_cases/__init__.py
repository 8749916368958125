"""
Policy tests: the decisions expected of a policy, as files of cases, and the runner that holds it to them.
"""

from .run import Failure, Result, run_case
from .steps import Case, CaseFile, find_cases, load_cases, read_cases, shipped_with_cases


__all__ = [
    "Case", "CaseFile", "Failure", "Result", "find_cases", "load_cases", "read_cases", "run_case", "shipped_with_cases",
]  # fmt: skip
