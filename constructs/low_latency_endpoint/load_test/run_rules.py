"""What `low-latency load-test` refuses, with codes (LLE950 to LLE959, LLE988 to LLE991)."""

from __future__ import annotations

from ..errors import rule
from ..planning.limits import Range
from ..planning.load_test_validity import LIMIT_NEEDED

__all__ = [
    "ALLOWED_ERRORS", "FIRST_BYTE_STREAMS", "INSTANCES_KNOWN", "LATENCY_NEEDED", "LIMIT_NEEDED",
    "LIMIT_REACHED", "LOAD_FORM", "NOTHING_ANSWERED", "ONE_INSTANCE_TYPE", "PAYLOAD_NEEDED",
    "PRECISION", "RESULT_FILE", "SETTINGS_ENDPOINT", "WRITTEN",
]

LOAD_FORM = rule(
    "LLE950", "a load test needs exactly one kind of load",
    mend="Give --rate (requests per second, whoever waits), --users (callers that each wait for "
         "their answer), --find-limit, or --confirm.",
)
PAYLOAD_NEEDED = rule(
    "LLE951", "a load test needs something to send",
    mend="Give --payload a file, a folder, module:function or a JSON text, or --settings with a "
         "warm-up payload.",
)
LATENCY_NEEDED = rule(
    "LLE952", "there is no latency target to judge by",
    mend="Give --target p99=200ms, or --settings with endpoints.<name>.latency.",
)
SETTINGS_ENDPOINT = rule(
    "LLE953", "the settings file does not say which of its endpoints is meant",
    mend="State endpoint_name in the settings file, or name the endpoint by its key.",
)
NOTHING_ANSWERED = rule(
    "LLE954", "the endpoint answers next to nothing even to one caller at a time",
    mend="Send one request by hand: payload, content type, permissions (sagemaker:InvokeEndpoint) "
         "and the container's log say why.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html",
)
RESULT_FILE = rule(
    "LLE955", "a load-test result cannot be read",
    mend="Give a file that low-latency load-test --output wrote.",
)
WRITTEN = rule(
    "LLE957", "a file of the load test cannot be written",
    mend="Name a file in a folder that exists and that you may write to.",
)
ALLOWED_ERRORS = Range(
    rule("LLE958", "the share of errors to bear is out of range",
         mend="Give a share: 0.001 bears one failed request in a thousand."),
    "the share of errors", 0, 0.5, "", False,
)
PRECISION = Range(
    rule("LLE959", "the precision of the limit is out of range",
         mend="Give how far apart, as a share, the highest rate that holds and the next tried may "
              "stay: 0.05 by default."),
    "the precision", 0.005, 0.5, "", False,
)
INSTANCES_KNOWN = rule(
    "LLE988", "the limit of one instance needs the number of instances that answer",
    mend="Allow sagemaker:DescribeEndpoint, or give --instances the number that serve.",
    source="/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
ONE_INSTANCE_TYPE = rule(
    "LLE989", "variants of several instance types have no limit of one instance",
    mend="Give --variant: look for the limit of one variant at a time.",
    source="/sagemaker/latest/APIReference/API_ProductionVariant.html",
)
LIMIT_REACHED = rule(
    "LLE990", "the load test did not reach the limit of an instance",
    mend="Run low-latency load-test --find-limit without --up-to, or with a higher one; or plan "
         "with what is known to hold: --accept-lower-bound, which may plan more instances than are "
         "needed.",
)
FIRST_BYTE_STREAMS = rule(
    "LLE991", "a target for the first byte needs response streams",
    mend="Add --stream, or leave the target out: a whole answer has no first byte of its own.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html",
)
