"""
The descriptions that tools of MCP servers had when they were first seen; a change is held until somebody allows it.
"""
