"""What tells of latency and failures: alarms, their topic, the dashboard.

It imports ``hosting`` and what that may import.
"""
