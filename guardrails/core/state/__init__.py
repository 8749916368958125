"""
What a session remembers, and the only code that changes it.
"""
