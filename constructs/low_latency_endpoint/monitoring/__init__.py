"""What tells of latency and failures: alarms, their topic, the dashboard."""
