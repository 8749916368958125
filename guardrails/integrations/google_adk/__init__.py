"""
google-adk: a plugin for all agents of an app.

    App(name="app", root_agent=agent, plugins=[GuardrailsPlugin(Policy.load("default"))])
"""

from .plugin import GuardrailsPlugin


__all__ = ["GuardrailsPlugin"]
