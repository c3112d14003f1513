"""The load generator: arrivals, payloads, sending, users, latencies."""
