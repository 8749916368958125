"""
A proxy in front of an MCP server, whoever wrote it: forwards the original bytes, and guards the calls of tools among them.
"""
