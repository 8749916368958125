"""
What never runs beside a call: readers, judgements, reports, training, policy cases.
"""
