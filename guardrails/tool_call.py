"""
From what a host hands over to a call that can be judged: arguments read, checked, coerced and signed.
"""

from typing import Any

from .arguments import Arguments
from .signature import low64, parse_arguments, sign
from .types import Problem, ToolCall


def tool_call(tool: str, arguments: Any, call_id: str, spec: Arguments | None) -> ToolCall:
    """
    The call of *tool* with *arguments*, a mapping or the JSON text of a model, checked against *spec*.

    A call whose arguments do not fit is signed as it came; what is wrong is in its `problems`.
    """
    problems: tuple[Problem, ...] = ()
    if type(arguments) is str:
        arguments, problems = _read_text(arguments, required=spec is not None)
    elif arguments is None:
        arguments = {}
    if spec is not None and not problems:
        arguments, problems = spec.check(arguments)
    signature, canonical = sign(tool, arguments)
    sig = None if signature is None else low64(signature)
    return ToolCall(tool, arguments, call_id, signature, sig, problems, canonical)


def _read_text(text: str, *, required: bool) -> tuple[Any, tuple[Problem, ...]]:
    value, problem = parse_arguments(text)
    if problem is None and (required or isinstance(value, dict)):
        return value, ()
    if required or text.lstrip().startswith("{"):
        return text, (Problem("", problem or "the arguments are no object", "json"),)
    # A free-form tool: its whole input is one text.
    return text, ()
