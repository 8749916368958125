"""
Likeness of calls and results whose bytes differ, and the patterns that such calls form.
"""
