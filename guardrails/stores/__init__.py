"""
Where the state of sessions is kept.
"""
