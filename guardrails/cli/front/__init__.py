"""
The front of all commands: help with examples, completion, quiet endings, signals.
"""
