"""
From what a host hands over to a call that can be judged: arguments read, checked, coerced and signed.
"""

from typing import Any, NoReturn

from guardrails.core.arguments import Arguments
from guardrails.core.text.signature import parse_arguments, sign
from guardrails.core.values.errors import SessionError
from guardrails.core.values.names import bounded_name
from guardrails.core.values.types import Problem, ToolCall


def tool_call(
    tool: str, arguments: Any, call_id: str, spec: Arguments | None, labels: tuple[str, ...] = ()
) -> ToolCall:
    """
    Returns the call of *tool* with *arguments*, a mapping or the JSON text of a model, checked against *spec*.

    A call whose arguments do not fit is signed as it came; what is wrong is in its `problems`. Its *labels* are not signed.
    """
    problems: tuple[Problem, ...] = ()
    if type(arguments) is str:
        arguments, problems = _read_text(arguments, required=spec is not None)
    elif arguments is None:
        arguments = {}
    if spec is not None and not problems:
        arguments, problems = spec.check(arguments)
    signature, sig, canonical = sign(tool, unlabelled(arguments, labels) if labels else arguments)
    return ToolCall(tool, arguments, call_id, signature, sig, problems, canonical)


def unlabelled(arguments: Any, labels: tuple[str, ...]) -> Any:
    """
    Returns *arguments* without those that are *labels*.
    """
    if not isinstance(arguments, dict) or arguments.keys().isdisjoint(labels):
        return arguments
    return {name: value for name, value in arguments.items() if name not in labels}


def asked(tool: str, arguments: Any) -> NoReturn:
    """
    Stands for the executor of a call that is only asked about.
    """
    raise NotImplementedError(f"`{tool}` is only asked about")


def claiming(tool: str, arguments: Any) -> None:
    """
    Stands for the executor of a call that is run elsewhere.
    """


def checked(tool: Any, call_id: Any, execute: Any) -> tuple[str, str | None]:
    """
    Returns the names of a call as plain text: a member of a string enumeration is its value. The name of a tool is
    bounded.

    Raises TypeError if a name is no text or *execute* cannot be called, SessionError for an empty id.
    """
    if not isinstance(tool, str):
        raise TypeError(f"`tool` is the name of a tool, not `{type(tool).__name__}`")
    if not callable(execute):
        shown = type(execute).__name__
        raise TypeError(f"`execute` is a function of (tool, arguments) that makes the call, not `{shown}`")
    if call_id is not None and not isinstance(call_id, str):
        raise TypeError(f"`id` is the model's id of the call, text or None, not `{type(call_id).__name__}`")
    if call_id == "":
        raise SessionError("`id` must not be empty: leave it out if the model gave none")
    return bounded_name(str.__str__(tool)), None if call_id is None else str.__str__(call_id)


def _read_text(text: str, *, required: bool) -> tuple[Any, tuple[Problem, ...]]:
    value, problem = parse_arguments(text)
    if problem is None and (required or isinstance(value, dict)):
        return value, ()
    if required or text.lstrip().startswith("{"):
        return text, (Problem("", problem or "the arguments are no object", "json"),)
    # A free-form tool: its whole input is one text.
    return text, ()
