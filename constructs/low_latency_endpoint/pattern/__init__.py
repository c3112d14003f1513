"""Everything from a latency target, ``LowLatencyEndpoint``, and the stacks of a settings file.

It imports all rooms of constructs.
"""
