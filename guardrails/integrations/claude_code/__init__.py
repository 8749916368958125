"""
Claude Code's hooks: what they are told, and what they answer. Nothing here needs its SDK.
"""

from .events import EVENTS, answer, session_of


__all__ = ["EVENTS", "answer", "session_of"]
