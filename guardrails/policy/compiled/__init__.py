"""
A policy compiled to one JSON file, so that a short-lived process reads it without YAML and without most checks.

`source` imports os only; `loading` has `load_compiled`.
"""
