"""
How the contract drives a host: a scripted model, plain functions as tools, and what came of a run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """
    A tool call that the scripted model makes. *arguments* that are text are sent as they are, be they JSON or not.
    """

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    """None: the driver makes one, other than all before."""


@dataclass(frozen=True)
class Say:
    """
    What the scripted model answers to one request.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int] | None = (10, 5)
    """Tokens in and out; None: the model does not say."""


@dataclass(frozen=True)
class Asked:
    """
    One request as the model gets it.
    """

    n: int
    """From 0."""
    tools: tuple[str, ...]
    """Names of the tools that are offered."""
    choice: str | None
    """`auto`, `none`, `required`, the name of a forced tool, or None if nothing is said."""
    results: tuple[str, ...]
    """What the model can read of tool results, oldest first, as text."""

    @property
    def off(self) -> bool:
        """
        Whether tools are off.
        """
        return not self.tools or self.choice == "none"


Script = Callable[[Asked], Say]
"""The model: what it answers to a request."""


@dataclass
class Ran:
    """
    What came of a run.
    """

    answer: str | None = None
    """The final answer, as the host gives it to its user."""
    asked: list[Asked] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """What the model could read of tool results in the end, oldest first."""
    error: BaseException | None = None
    """What the host raised."""
    streamed: list[str] = field(default_factory=list)
    """Pieces of text, as the host streamed them."""
    unanswered: list[str] = field(default_factory=list)
    """Ids of calls without a result in the conversation that the host keeps."""
    paused: list[str] = field(default_factory=list)
    """Names of the tools whose calls wait for a person, in the host's own form."""
    output: Any = None
    """The structured output, if one was asked for."""


class Driver(Protocol):
    """
    One host, with its real package. `tests/hosts/test_NAME.py` has its driver and the contract over it.
    """

    name: str
    cannot: Mapping[str, str]
    """Tests of the contract that the host's own source makes impossible, by name: the reason, with its file and line."""

    def adapter(self, guarded: Any, **options: Any) -> Any:
        """
        The adapter of a policy or a session; *options* are those of `Policy.session`.
        """

    def run(
        self,
        adapter: Any,
        tools: Sequence[Callable[..., Any]],
        script: Script,
        *,
        prompt: str = "go",
        thread: str | None = None,
        stream: bool = False,
        sync: bool = False,
        **more: Any,
    ) -> Ran:
        """
        Let an agent of the host run *tools* as *script* says, in *thread* if it is named, behind *adapter* (None: the bare host).
        """
