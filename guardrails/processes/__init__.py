"""
Programs: started, confined, ended as a whole.
"""
