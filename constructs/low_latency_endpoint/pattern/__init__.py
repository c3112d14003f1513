"""Everything from a latency target: ``LowLatencyEndpoint``.

It imports all rooms of constructs.
"""
