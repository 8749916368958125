"""
Guards that shape what comes back.
"""
