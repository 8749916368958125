"""
What the readers share in reading text and fields.
"""
