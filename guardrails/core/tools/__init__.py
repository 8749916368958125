"""
What a policy or a program declares of a tool, and a call of it.
"""
