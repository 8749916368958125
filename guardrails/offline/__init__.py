"""
The parts that never run beside a call: readers, judgements, reports, training, policy cases.
"""
