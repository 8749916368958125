"""
What a policy would have done to recorded calls, and how often it would have been wrong.
"""
