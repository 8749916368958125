"""
Training from records; nothing at run time imports it.
"""
