"""
What a proxy in front of an MCP server costs: `python -m benchmarks.proxy`.
"""
