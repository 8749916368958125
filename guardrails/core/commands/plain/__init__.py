"""
Commands plain enough that a list of allowed ones can be trusted.
"""
