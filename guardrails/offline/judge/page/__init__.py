"""
The parts of the page that shows a judgement.
"""
