"""
What the tools of MCP servers said of themselves when they were first seen; a change is held until somebody allows it.
"""
