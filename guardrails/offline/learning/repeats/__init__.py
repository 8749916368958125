"""
The model that judges repeats, from rows to a file.
"""
