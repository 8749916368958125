"""
What happens in a session beside calls that are decided and settled.
"""
