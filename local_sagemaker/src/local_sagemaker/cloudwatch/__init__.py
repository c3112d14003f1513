"""CloudWatch: metrics, alarms that evaluate, composite alarms.

moto keeps alarms and never looks at them. Everything here follows CloudWatch's documented rules,
on a clock that the caller controls; docs/cloudwatch.md says where it stops.
"""
