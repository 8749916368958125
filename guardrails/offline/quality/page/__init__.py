"""
The page of a quality report.
"""
