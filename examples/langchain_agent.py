"""
A LangChain agent behind the guards: a middleware, and the agent stays as it is.

Needs `pip install "toolcall-guardrails[langchain]"`. The model is a script; put `"openai:gpt-5-mini"` in its place for a real one.
"""

import sys

from typing import Any

from guardrails import Policy


try:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    from guardrails.integrations.langchain import GuardrailsMiddleware
except ImportError:
    sys.exit('this program needs `langchain`: pip install "toolcall-guardrails[langchain]"')


runs: list[str] = []


def search(query: str) -> str:
    """Search the web."""
    runs.append(query)
    return "nothing found"


class Stuck(BaseChatModel):
    """Makes the same call for ever. Without tools it can only answer."""

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        return self.bind(offered=bool(tools), **settings)

    def _generate(self, messages: Any, *_: Any, offered: bool = False, **settings: Any) -> ChatResult:
        made = [{"name": "search", "args": {"query": "hotels"}, "id": f"call_{len(messages)}"}] if offered else []
        said = AIMessage("" if made else "I found no hotels.", tool_calls=made)
        said.usage_metadata = {"input_tokens": 200, "output_tokens": 20, "total_tokens": 220}
        return ChatResult(generations=[ChatGeneration(message=said)])

    @property
    def _llm_type(self) -> str:
        return "stuck"


def main() -> None:
    guard = GuardrailsMiddleware(Policy.load("default"))
    agent: Any = create_agent(Stuck(), [search], middleware=[guard])
    done = agent.invoke({"messages": [("user", "Find it.")]}, {"configurable": {"thread_id": "t1"}})
    print(done["messages"][-1].text)
    print(f"the tool ran {len(runs)} times; {guard.session('t1').exhausted}")


if __name__ == "__main__":
    main()
