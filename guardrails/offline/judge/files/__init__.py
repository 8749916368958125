"""
Judging files: many, in order, interrupted and taken up again.
"""
