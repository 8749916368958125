"""
Claude Agent SDK: hooks, `can_use_tool`, and what the responses used.

    guard = GuardrailsHooks(Policy.load("default"))
    async for message in guard.charging(query(prompt="Find it.", options=guard.options())):
        ...
"""

from .hooks import GuardrailsHooks


__all__ = ["GuardrailsHooks"]
