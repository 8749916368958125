"""
Puts Python functions behind a session, with types for a type checker.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from guardrails.core.envelope.envelope import Envelope

from .turns.turns import Turns


P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Returns = Literal["json", "envelope", "value"]
A = TypeVar("A", bound=Awaitable[Any] | AsyncIterator[Any])
"""
What an asynchronous function, or an asynchronous generator function, is seen to return. All overloads are generic in it, or
mypy would take each function whose result has an `Any` for one that fits several.
"""


class Reader(Protocol[P, R_co]):
    """
    A wrapped generator function, which reads it whole. (A `Callable` like the others, mypy would take one of a `Generator` of
    things with an `Any` for an untyped function.)
    """

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _Nothing:
    """
    Returned by no function, so that only one which may return anything, or never returns, is seen to return it.
    """


class Functions(Turns):
    """
    A session as the functions of a program use it.
    """

    @overload
    def wrap(
        self,
        function: Callable[P, _Nothing],
        *,
        returns: Returns = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Any: ...

    @overload
    def wrap(  # type: ignore[overload-overlap]  # an asynchronous one is the first that fits
        self,
        function: Callable[P, A],
        *,
        returns: Literal["json"] = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Coroutine[Any, Any, str]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["json"] = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, str]: ...

    @overload
    def wrap(  # type: ignore[overload-overlap]  # an asynchronous one is the first that fits
        self,
        function: Callable[P, A],
        *,
        returns: Literal["envelope"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Coroutine[Any, Any, Envelope]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["envelope"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, Envelope]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, AsyncIterator[T]],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Reader[P, Coroutine[Any, Any, list[T]]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, Iterator[T]],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Reader[P, list[T]]: ...

    @overload
    def wrap(
        self,
        function: Callable[P, T],
        *,
        returns: Literal["value"],
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[P, T]: ...

    def wrap(
        self,
        function: Callable[..., Any],
        *,
        returns: Returns = "json",
        name: str | None = None,
        hidden: Collection[str] = (),
    ) -> Callable[..., Any]:
        """
        Returns *function* behind the chain: same parameters, same kind (sync or async).

        It returns JSON text for a model, the `Envelope`, or the tool's own value (a generator's items as a list). With
        the tool's own value, a refused call raises `CallDenied`, and a call out of time raises TimeoutError. A call
        whose result says it failed raises `CallFailed`, and the tool's own exceptions are raised again. The signature
        says so, for frameworks that read it.

        Its arguments are checked by its signature, or by the policy's parameters if there are any. Parameters *hidden*
        are the caller's: passed by keyword, never checked, signed or recorded, and absent from the signature.

        Raises PolicyError if the signature cannot be read, SessionError if another function has the *name*.
        """
        from .calls.wrapping import wrapped

        return wrapped(self, function, returns, name, tuple(hidden))
