"""
Which settings the records support.
"""
