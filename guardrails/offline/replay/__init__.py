"""
Judges a policy by recorded calls: what it would have done, and how often it would have been wrong.
"""
