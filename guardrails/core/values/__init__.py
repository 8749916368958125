"""
The values that every room speaks of: types, errors, units, names.
"""
