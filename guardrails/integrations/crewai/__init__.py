"""
crewai: agents and crews whose tools and model requests go through a session.
"""

from .agents import Guardrails


__all__ = ["Guardrails"]
