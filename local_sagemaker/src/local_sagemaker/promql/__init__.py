"""PromQL: the series of containers' `/metrics`, the queries that alarms on tokens make, their API."""
