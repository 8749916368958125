"""
The parts of which the HTML pages are made.
"""
