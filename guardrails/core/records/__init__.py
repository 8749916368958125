"""
Records of each event, and how records are decided again.
"""
