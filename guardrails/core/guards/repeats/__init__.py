"""
Guards that stop what was asked before.
"""
