"""
The tool calls of a session: decided, run, waited for, settled.
"""
