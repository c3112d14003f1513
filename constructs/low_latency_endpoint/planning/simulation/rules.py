"""What a simulation can be asked, as coded limits and rules (LLE85x to LLE88x)."""

from __future__ import annotations

from ...errors import rule
from ..limits import Choice, Range

ROUTINGS = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE", "POWER_OF_TWO")

MEAN_SECONDS = Range(
    rule("LLE850", "a mean time is out of range", mend="Give the mean in seconds, above zero."),
    "a mean time", 1e-6, 1e6, "seconds", False,
)
VARIATION = Range(
    rule("LLE851", "a coefficient of variation is out of range",
         mend="Give standard deviation divided by mean: 0 for equal times, 1 for exponential ones, "
              "above 1 for language models with answers of very different length."),
    "a coefficient of variation", 0, 20, "", False,
)
SIMULATED_INSTANCES = Range(
    rule("LLE852", "the number of simulated instances is out of range",
         mend="Give a number of instances in the allowed range."),
    "the number of simulated instances", 1, 1_000_000,
)
CONCURRENCY = Range(
    rule("LLE853", "the concurrency of a simulated instance is out of range",
         mend="Give how many requests one instance works on at the same time: its workers, or the "
              "largest batch."),
    "the concurrency of an instance", 1, 4096,
)
SLOPE = Range(
    rule("LLE854", "the slope of a batching instance is out of range",
         mend="Give by how much each neighbour in the batch lengthens a request: 0 for workers of "
              "their own, 1 when all share one processor."),
    "the slope", 0, 10, "", False,
)
RATE = Range(
    rule("LLE855", "a rate of requests is out of range",
         mend="Give requests per second, above zero."),
    "a rate of requests", 1e-6, 1e9, "requests per second", False,
)
USERS = Range(
    rule("LLE856", "the number of users is out of range", mend="Give at least one user."),
    "the number of users", 1, 10_000_000,
)
SIMULATED_ROUTING = Choice(
    rule("LLE857", "a routing strategy is not one that can be simulated",
         mend="Choose one of the strategies; POWER_OF_TWO is a yardstick that SageMaker lacks."),
    "a simulated routing strategy", ROUTINGS,
)
REPLICATIONS = Range(
    rule("LLE858", "the number of replications is out of range",
         mend="Give at least two: the confidence interval comes from their differences."),
    "the number of replications", 2, 100_000,
)
ROUTERS = Range(
    rule("LLE859", "the number of routers is out of range", mend="Give at least one router."),
    "the number of routers", 1, 1000,
)
SECONDS = Range(
    rule("LLE860", "a time of the simulation is out of range",
         mend="Give seconds in the allowed range."),
    "a time", 0, 1e9, "seconds", False,
)
SHARE = Range(
    rule("LLE861", "a share is out of range", mend="Give a share from 0 to 1."),
    "a share", 0, 1, "", False,
)
REQUESTS = Range(
    rule("LLE862", "the number of simulated requests is out of range",
         mend="Give a number of requests in the allowed range."),
    "the number of requests", 100, 10_000_000_000,
)
PREFIXES = Range(
    rule("LLE863", "the number of prefixes is out of range",
         mend="Give how many different beginnings the requests have."),
    "the number of prefixes", 1, 100_000,
)
SCALING_METRIC = Choice(
    rule("LLE867", "a scaling metric is not one that can be simulated",
         mend="Choose one of the metrics; TargetTracking.on_concurrency makes the second."),
    "a scaling metric", ("invocations", "concurrency"),
)
SCALING_PERIOD = Range(
    rule("LLE868", "the period of a scaling metric is out of range",
         mend="Give seconds: 60 for invocations, 10 for the metric of high resolution."),
    "the period of a metric", 1, 3600, "seconds", False,
)
CONFIDENCE = Range(
    rule("LLE864", "a confidence is out of range",
         mend="Give the chance that an interval holds the truth, as a share: 0.99 for 99 %."),
    "a confidence", 0.5, 0.999999, "", False,
)
PERCENTILE = rule(
    "LLE865", "a percentile is not one that a simulation counts",
    mend="Choose one of 50, 90, 95, 99 and 99.9.",
)
TIMELINE = rule(
    "LLE866", "the lines of a timeline have an impossible length",
    mend="Give the window in seconds, above zero and so that the run has at most a million lines.",
)
SAMPLES = rule(
    "LLE870", "a service law needs measured times above zero",
    mend="Give at least two times in seconds, or quantiles that rise with their probabilities.",
)
TRACE = rule(
    "LLE871", "an arrival trace needs times that do not fall",
    mend="Give at least two arrival times in seconds, in order, from zero on.",
)
SHAPE = rule(
    "LLE872", "there is no traffic shape of that name", mend="Choose one of the shapes that ship.",
)
LOAD_TEST_FILE = rule(
    "LLE873", "a load-test result cannot be read",
    mend="Give a JSON file as docs/simulation.md describes it: source, rate and service times.",
)
SEARCH_GOAL = rule(
    "LLE874", "a search goal cannot be read",
    mend='Write it as "p99<200ms at 1000 TPS, cheapest" or "p99<0.2s at 1000 TPS, fastest".',
)
THROUGHPUT_NEEDED = rule(
    "LLE875", "the simulation needs to know what one instance serves",
    mend="State throughput in the settings, or pass --from-load-test or --service-time.",
)
EXTRA_NEEDED = rule(
    "LLE876", "this needs a package that is not installed",
    mend="pip install 'cdk-low-latency-endpoint[simulation]'.",
)
OVERLOADED = rule(
    "LLE877", "more requests arrive than the fleet can ever serve",
    mend="Raise the instances, or lower the rate: the queue grows for as long as the run lasts.",
)
WARM_UP = rule(
    "LLE878", "a run leaves nothing to count",
    mend="Simulate more requests or seconds, or discard fewer at the start.",
)
SHAPE_LEVELS = rule(
    "LLE881", "the levels of a traffic shape are impossible",
    mend="Give at least one level as (end in seconds, share of the peak): ends that rise from "
         "above zero, shares not below zero and one of them above.",
)
OUTAGE = rule(
    "LLE879", "an outage or failure names what is not there",
    mend="Name a zone of the scenario, or no more instances than it has.",
)
RECORDED_TRAFFIC = rule(
    "LLE880", "recorded traffic cannot be read",
    mend="Give a CSV file of times and counts, or the JSON that aws cloudwatch "
         "get-metric-statistics answers for Invocations with --statistics Sum: see "
         "docs/simulation.md.",
)
