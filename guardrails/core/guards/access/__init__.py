"""
Guards that say which tools, arguments, paths and commands are allowed.
"""
