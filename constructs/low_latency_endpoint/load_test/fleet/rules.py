"""What `low-latency load-test --fleet` refuses, with codes (LLE965 to LLE969)."""

from __future__ import annotations

from ...errors import rule
from ...planning.limits import Range

__all__ = [
    "FLEET_ANSWERS", "FLEET_DEPLOYED", "FLEET_STARTS", "PAYLOADS_TRAVEL", "WORKERS",
]

FLEET_DEPLOYED = rule(
    "LLE965", "there is no load-test fleet for this endpoint in this account and region",
    mend="Deploy one: cdk deploy --all -c load-test-fleet=true; or add a LoadTestFleet to your "
         "own app. Check --region and --profile.",
)
WORKERS = Range(
    rule("LLE966", "the number of the fleet's workers is out of range",
         mend="Give 1 to 200 workers. One sends some thousand requests per second; a new "
              "account runs few Fargate tasks at once (quota: Fargate On-Demand vCPU resource "
              "count).",
         source="/AmazonECS/latest/developerguide/service-quotas.html"),
    "the number of workers", 1, 200, "workers",
)
FLEET_STARTS = rule(
    "LLE967", "the fleet's tasks did not start",
    mend="What ECS says above names the cause. CannotPullContainerError and "
         "ResourceInitializationError: the subnets reach no ECR, S3 or Logs (interface_endpoints "
         "of LoadTestFleet). Capacity: try fewer workers, or later.",
    source="/AmazonECS/latest/developerguide/stopped-task-error-codes.html",
)
FLEET_ANSWERS = rule(
    "LLE968", "the fleet stopped before the result was there",
    mend="The end of the task's log says why; it is in the fleet's log group for as long as the "
         "log is kept.",
)
PAYLOADS_TRAVEL = rule(
    "LLE969", "the payload generator cannot be sent to the fleet",
    mend="Put the function into a module of one file that imports only the standard library and "
         "what the load generator's image holds, or write its payloads into a folder.",
)
