"""
What is recorded of each event, and how records are decided again.
"""
