"""
What a shell command says of itself: whether it looks, waits or changes something.
"""
