"""
The real openai client, for the scripted server.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from guardrails.agent.endpoint import imported
from guardrails.core.values.errors import GuardrailsError
from guardrails.testing.scripted_openai import ScriptedOpenAI


if TYPE_CHECKING:
    from openai import OpenAI


class DemoError(GuardrailsError):
    """
    The demo cannot run; says what it needs.
    """


@contextmanager
def scripted_client(server: ScriptedOpenAI) -> Iterator["OpenAI"]:
    """
    A client of the scripted *server*. Raises MissingExtra if openai is not installed.
    """
    openai = imported("the demo")
    # The server is on loopback: no proxy of the environment stands between, and no certificates are needed.
    http = openai.DefaultHttpxClient(trust_env=False, verify=False)
    with openai.OpenAI(base_url=server.base_url, api_key="-", max_retries=0, http_client=http) as client:
        try:
            yield client
        except openai.OpenAIError as error:
            raise DemoError(f"the scripted server refused: {error}") from error
