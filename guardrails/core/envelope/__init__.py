"""
What the model reads.
"""
