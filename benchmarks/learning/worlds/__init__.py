"""
Six simulated worlds that differ in how failures come about, and what of one can be learned in the others.
"""
