"""PromQL: the series of containers' `/metrics`, queries over them, Prometheus's HTTP API.

CloudWatch "uses PromQL based on the Prometheus 3.0 specification" (its user guide, "Query metrics
with PromQL"). The grammar is promql-parser's, the evaluation is here; what of it is not known here
is refused by its name.
"""
