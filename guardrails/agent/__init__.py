"""
An agent at the command line: a task, a model behind an endpoint, tools behind a policy, all of it kept and resumable.
"""
