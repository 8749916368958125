"""
A shell command's purpose, read from its text: whether it looks, waits or changes something.
"""
