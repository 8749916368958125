"""
LangChain and LangGraph: a middleware of `create_agent`, whose methods fit `ToolNode` and graphs of one's own too.

    create_agent(model, tools, middleware=[GuardrailsMiddleware(Policy.load("default"))])
"""

from .middleware import GuardrailsMiddleware


__all__ = ["GuardrailsMiddleware"]
