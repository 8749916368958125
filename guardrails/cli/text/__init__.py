"""
What the commands print.
"""
