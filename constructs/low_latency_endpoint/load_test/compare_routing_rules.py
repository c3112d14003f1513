"""What `low-latency compare-routing` refuses, with codes (LLE960 to LLE964)."""

from __future__ import annotations

from ..errors import rule
from ..planning.limits import Range

__all__ = ["CAPACITY", "CONFIDENCE", "PAIRS", "SAME_ROUTING", "TWO_SIDES"]

TWO_SIDES = rule(
    "LLE960", "a comparison needs two sides: two variants of one endpoint, or two endpoints",
    mend="Name one endpoint and its two variants (--variant random --variant least), or two "
         "endpoints. Requests reach each variant by TargetVariant, whatever its weight.",
    source="/sagemaker/latest/dg/model-ab-testing.html",
)
SAME_ROUTING = rule(
    "LLE961", "both sides route alike, so their difference says nothing about routing",
    mend="Give the two variants different RoutingConfig.RoutingStrategy, or say --same-routing to "
         "compare them all the same, as a test of the test.",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
)
PAIRS = Range(
    rule("LLE962", "the number of pairs of a comparison is out of range",
         mend="Give how often both sides are loaded in turn; ten by default, more to see smaller "
              "differences."),
    "the number of pairs", 4, 1000,
)
CONFIDENCE = Range(
    rule("LLE963", "the confidence of a comparison is out of range",
         mend="Give the chance with which an interval shall hold the truth: 0.95 by default."),
    "the confidence", 0.5, 0.9999, "", whole=False,
)
CAPACITY = rule(
    "LLE964", "the instance counts of the sides cannot be changed from size to size",
    mend="Change them by hand, and compare at each size with --users, four for each instance.",
    source="/sagemaker/latest/APIReference/API_UpdateEndpointWeightsAndCapacities.html",
)
