"""
The failures that are worth another try: features, a model's scores and the decision by them. Pure.
"""
