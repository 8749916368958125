"""
Reads the traces of agents: spans and runs.
"""
