"""
Events of a session beside calls that are decided and settled, and the effects of failed calls.
"""
