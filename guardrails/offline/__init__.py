"""
The parts that never run beside a call: transcripts, judgements, reports, training, policy cases.
"""
