"""
A proxy in front of any MCP server: forwards the original bytes, and guards the calls of tools among them.
"""
