"""
The openai client for an endpoint, and what its failures mean for a person.
"""

import os

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from guardrails.core.values.errors import ResponseFailed, needs
from guardrails.core.values.usage import public
from guardrails.integrations.openai.body import NO_STREAM, in_one_line

from .settings import AgentError


if TYPE_CHECKING:
    from openai import OpenAI

_REASON_BYTES: Final = 300


@contextmanager
def client_of(base_url: str | None) -> Iterator["OpenAI"]:
    """
    A client of the endpoint *base_url* (None: OpenAI's), with the key that OPENAI_API_KEY holds.

    Raises MissingExtra if openai is not installed, AgentError if a key is needed, or the endpoint fails while the client is in use.
    """
    with needs("openai", "`guardrails run`"):
        import openai
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not base_url and not os.environ.get("OPENAI_BASE_URL"):
        raise AgentError("set OPENAI_API_KEY, or name an endpoint that needs no key with `--base-url`")
    try:
        client = openai.OpenAI(base_url=base_url, api_key=key or "-")
    except Exception as error:
        # Certificates that cannot be read, a proxy that is none.
        reason = in_one_line(str(error) or type(error).__name__, key, _REASON_BYTES)
        file = os.environ.get("SSL_CERT_FILE")
        named = f" (SSL_CERT_FILE is `{file}`)" if file and isinstance(error, OSError) else ""
        raise AgentError(f"the openai client cannot be made: {reason}{named}") from error
    try:
        with client:
            yield client
    except openai.APIConnectionError as error:
        cause = error.__cause__ or error
        asked = public(base_url or str(client.base_url))
        raise AgentError(f"the endpoint `{asked}` cannot be reached: {cause}", "endpoint.unreachable") from error
    except openai.APIStatusError as error:
        # The client leaves out what has no `message`: a page of a proxy, `{"error": "no such model"}`.
        own = error.message != f"Error code: {error.status_code}"
        reason = in_one_line(error.message if own else str(error.body or error.message), key, _REASON_BYTES)
        raise AgentError(f"the endpoint refused (HTTP {error.status_code}): {reason}", "endpoint.refused") from error
    except openai.OpenAIError as error:
        reason = in_one_line(str(error), key, _REASON_BYTES)
        raise AgentError(f"the endpoint failed: {reason}", "endpoint.failed") from error
    except ResponseFailed as error:
        where = "" if error.url is None or error.url in str(error) else f" `{error.url}`"
        hint = "; if it cannot stream: `--no-stream`" if error.code == NO_STREAM else ""
        raise AgentError(f"the endpoint{where} failed: {error}{hint}", "endpoint.failed") from error
