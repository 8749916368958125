"""
The openai client for an endpoint, and what its failures mean for a person.
"""

import os

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from guardrails.core.values.errors import ResponseFailed, needs
from guardrails.core.values.usage import public
from guardrails.integrations.openai.body import NO_STREAM, SHOWN_BYTES, in_one_line

from .settings import AgentError


if TYPE_CHECKING:
    from openai import OpenAI

_REASON_BYTES: Final = 500


@contextmanager
def client_of(base_url: str | None, who: str = "`guardrails run`") -> Iterator["OpenAI"]:
    """
    A client of the endpoint *base_url* (None: OpenAI's) for *who*, with the key that OPENAI_API_KEY holds.

    Raises MissingExtra if openai is not installed, AgentError if a key is needed, or the endpoint fails while the client is in use.
    """
    openai = imported(who)
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not base_url and not os.environ.get("OPENAI_BASE_URL"):
        raise AgentError("set OPENAI_API_KEY, or name an endpoint that needs no key with `--base-url`")
    try:
        with _made(openai, base_url=base_url, api_key=key or "-") as client:
            yield client
    except openai.APIConnectionError as error:
        cause = error.__cause__ or error
        asked = public(base_url or str(client.base_url))
        raise AgentError(f"the endpoint `{asked}` cannot be reached: {cause}", "endpoint.unreachable") from error
    except openai.APIStatusError as error:
        said, most = error.message, _REASON_BYTES
        if said == f"Error code: {error.status_code}":
            # The client leaves out what has no `message`: a page of a proxy, `{"error": "no such model"}`.
            said, most = str(error.body or said), SHOWN_BYTES
        said = in_one_line(said, key, most)
        raise AgentError(f"the endpoint refused (HTTP {error.status_code}): {said}", "endpoint.refused") from error
    except openai.OpenAIError as error:
        said = in_one_line(str(error), key, _REASON_BYTES)
        raise AgentError(f"the endpoint failed: {said}", "endpoint.failed") from error
    except ResponseFailed as error:
        where = "" if error.url is None or error.url in str(error) else f" `{error.url}`"
        hint = "; if it cannot stream: `--no-stream`" if error.code == NO_STREAM else ""
        raise AgentError(f"the endpoint{where} failed: {error}{hint}", "endpoint.failed") from error


def imported(who: str) -> Any:
    """
    The package openai, which *who* needs. Raises MissingExtra if it is not installed.
    """
    with needs("openai", who):
        import openai
    return openai


def _made(openai: Any, **settings: Any) -> "OpenAI":
    """
    A client of *openai*. Raises AgentError if the environment does not let it be made: certificates that cannot be read, a
    proxy that is none.
    """
    try:
        client: OpenAI = openai.OpenAI(**settings)
    except openai.OpenAIError:
        raise
    except Exception as error:
        file = os.environ.get("SSL_CERT_FILE")
        said = in_one_line(str(error), None, _REASON_BYTES) or type(error).__name__
        if file and isinstance(error, OSError):
            said = (
                f"SSL_CERT_FILE names `{file}`, which cannot be read: {said}; unset it, or name a file of certificates"
            )
        raise AgentError(f"the openai client cannot be made: {said}") from error
    return client
