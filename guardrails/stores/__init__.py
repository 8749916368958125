"""
Keeps the state of sessions.
"""
