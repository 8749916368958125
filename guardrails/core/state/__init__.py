"""
The memory of a session, and the only code that changes it.
"""
