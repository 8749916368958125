"""
What makes calls and results alike though their bytes differ, and the patterns that such calls form.
"""
