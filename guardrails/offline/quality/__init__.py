"""
How good each tool is for the agents that call it, from records: what to redesign first, and what a policy should know.
"""
