"""
The model's side of a session: its requests, its responses, their costs, and the end of a loop.
"""
