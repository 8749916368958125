"""
pydantic-ai: a capability that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(model, tools=[search], capabilities=[GuardrailsCapability(Policy.load("default"))])
"""

from .capability import GuardrailsCapability as GuardrailsCapability
