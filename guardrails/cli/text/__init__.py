"""
The texts that the commands print.
"""
