"""
Policies: from a file or from code to a chain of guards.
"""
