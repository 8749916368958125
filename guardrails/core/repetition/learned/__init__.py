"""
The learned judgement of whether a call will bring anything new, from what its session did before.
"""
