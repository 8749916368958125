"""
What tracing keeps of agents: spans and runs.
"""
