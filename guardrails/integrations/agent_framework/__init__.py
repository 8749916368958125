"""
Microsoft agent-framework: a middleware that puts the tools of an agent, and its model requests, behind a session.

    agent = Agent(client, tools=[search], middleware=[GuardrailsMiddleware(Policy.load("default"))])
"""

from .middleware import GuardrailsMiddleware as GuardrailsMiddleware
