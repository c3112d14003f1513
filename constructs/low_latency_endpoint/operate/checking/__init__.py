"""What ``low-latency preflight`` and ``low-latency verify`` share."""
