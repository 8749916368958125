"""
Strands Agents: hooks of an `Agent`, which put middleware around its tool calls and its model requests.

    Agent(model, tools=tools, hooks=[GuardrailsHooks(Policy.load("default"))])
"""

from .hooks import GuardrailsHooks


__all__ = ["GuardrailsHooks"]
