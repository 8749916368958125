"""
Canonical text of any value, its signature, and what is cut to fit.
"""
