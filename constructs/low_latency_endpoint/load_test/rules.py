"""What a load generator can be asked, as coded limits and rules (LLE980 to LLE987)."""

from __future__ import annotations

from ..errors import rule
from ..planning.limits import Range

__all__ = [
    "ARRIVALS_FORM", "GENERATOR", "GENERATOR_PROCESSES", "RECORDED_ARRIVALS", "STEP_FORM",
    "STEP_RATE", "STEP_SECONDS", "STEP_USERS",
]

STEP_RATE = Range(
    rule("LLE980", "a rate of a load test is out of range",
         mend="Give requests per second: above zero somewhere, nowhere below it."),
    "a rate", 0, 10_000_000, "requests per second", whole=False,
)
STEP_USERS = Range(
    rule("LLE981", "the number of users of a load test is out of range",
         mend="Give the number of callers that each wait for their answer before they call again."),
    "the number of users", 1, 1_000_000,
)
STEP_SECONDS = Range(
    rule("LLE982", "a length of a load test is out of range",
         mend="Give seconds in the allowed range."),
    "a length", 0, 7 * 24 * 3600, "seconds", whole=False,
)
STEP_FORM = rule(
    "LLE983", "a step of a load test needs either arrivals or users, and time that counts",
    mend="Give arrivals for requests that do not wait for each other (open loop) or users for "
         "callers who do (closed loop), and a settling time shorter than the step.",
)
ARRIVALS_FORM = rule(
    "LLE984", "arrivals are not of a kind that can be sent",
    mend="Use one of the kinds of low_latency_endpoint.load_test.arrivals, or what their to_dict "
         "gave.",
)
RECORDED_ARRIVALS = rule(
    "LLE985", "a recorded traffic shape cannot be read",
    mend='Give JSON with "times" (seconds of each request), with "times" and "rates" (requests per '
         'second up to each time), or with "levels" (end in seconds, share of the peak) and the '
         "peak rate.",
)
GENERATOR_PROCESSES = Range(
    rule("LLE986", "the number of generator processes is out of range",
         mend="Give at least one; more processes than the machine has cores make each slower."),
    "the number of generator processes", 1, 1024,
)
GENERATOR = rule(
    "LLE987", "the load generator did not start, or ended before its step was over",
    mend="Read its last words above. It needs the extra: pip install "
         "'cdk-low-latency-endpoint[load-test]'.",
)
