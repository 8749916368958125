"""
Decide before a tool runs, complete after it.
"""
