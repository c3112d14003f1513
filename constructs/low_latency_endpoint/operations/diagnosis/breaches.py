"""What `low-latency diagnose` refuses, with codes."""

from __future__ import annotations

from ...errors import rule
from ..credentials import CREDENTIALS

__all__ = [
    "CLIENT_LATENCY_FORM", "CREDENTIALS", "ENDPOINT_EXISTS", "METRICS_READABLE", "PAGE_WRITTEN",
    "SINCE_FORM",
    "TARGET_FORM", "UNTIL_FORM",
]

ENDPOINT_EXISTS = rule(
    "LLE581", "the endpoint must exist in this account and region",
    mend="Check the name (aws sagemaker list-endpoints), --region and --profile.",
    source="/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
METRICS_READABLE = rule(
    "LLE582", "AWS must answer what the diagnosis cannot do without",
    mend="Check the credentials (aws sts get-caller-identity), the region, and that they may call "
         "sagemaker:DescribeEndpoint and cloudwatch:GetMetricData.",
    source="/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html",
)
SINCE_FORM = rule(
    "LLE584", "the window is no length of time that CloudWatch keeps",
    mend="Write a number and m, h or d: 30m, 1h, 2d.",
    source="/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html",
)
UNTIL_FORM = rule(
    "LLE585", "the end of the window is no time in the past",
    mend="Write it as 2026-11-20T03:30, with Z or +01:00 unless it is your machine's own time.",
)
TARGET_FORM = rule(
    "LLE586", "a latency target is not a statistic with a time",
    mend="Write p99=200ms; repeat the option for another statistic.",
)
CLIENT_LATENCY_FORM = rule(
    "LLE587", "a client latency is not a statistic with a time",
    mend="Write p99=240ms, as the callers measured it in the same window.",
)
PAGE_WRITTEN = rule(
    "LLE588", "the page could not be written",
    mend="Give --html a file in a folder that exists and that you may write to.",
)
