"""
The model's side of a session: its requests, its responses, what they cost, and how a loop ends.
"""
