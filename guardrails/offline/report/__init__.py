"""
The quality of each tool for the agents that call it, from records: which to redesign first, and the facts a policy
should know.
"""
