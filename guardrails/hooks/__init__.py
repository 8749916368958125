"""
The hooks of coding CLIs: their events come in, what a policy says of them goes out.
"""
