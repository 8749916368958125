"""
What all commands have in common: help with examples, completion, quiet endings.
"""
