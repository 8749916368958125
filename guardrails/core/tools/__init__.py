"""
The declarations of a policy or a program for a tool, and a call of it.
"""
