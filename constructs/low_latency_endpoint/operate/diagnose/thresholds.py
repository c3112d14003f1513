"""The thresholds of all causes: what "full", "slow", "the same load" or "after a start" means."""

from __future__ import annotations

from datetime import timedelta

from ...facts import metrics

# Periods that are enough to judge, and to be slow again and again. How long a limit must be exceeded
# say the alarms: sustained.py.
PERIODS, SLOW_OF_PERIODS = 5, 3
ENOUGH_REQUESTS = 20  # in a period: a high percentile says more than its slowest request
SPARSE_SHARE = 0.25  # of all periods, with fewer requests: a percentile is their maximum then
MOST = 0.8  # share of slow periods that one reason must explain

# Errors, as shares of the requests.
ERROR_RATE = 0.01  # as the library's own alarm on errors
LEAST_ERRORS = 5
# Shares of calls that failed from which on ModelLatency is not compared with the callers' latency, and
# is not fast: AWS does not say whether it holds them, and quick refusals make it short (assumed).
NOTABLE, REFUSING = 0.05, 0.2
CACHE_HITS = 0.95

# Percent of the whole instance. AWS's post on load testing: "we suggest around 60-70%", "around 80-90%
# [...] pick an instance with greater compute/memory", "less than 30% [...] scale down your instance
# type"; and with errors, where use is low, "it's not your hardware but something at the container or
# model level". It gives no number for low: 50 is assumed.
USED_PERCENT, UNDERUSED_PERCENT, ADVISED_PERCENT = 80.0, 30.0, 65.0
SATURATED_PERCENT, NEARLY_FULL_PERCENT = metrics.SATURATED_PERCENT, metrics.NEARLY_FULL_PERCENT
IDLE_PERCENT, IDLE_GPU_PERCENT = 50.0, 3.0
AT_REST_PERCENT = 5.0  # the server's and the agents' own work (assumed)
FULL_MEMORY_PERCENT, FULL_DISK_PERCENT = 90.0, 90.0
FULL_CACHE_PERCENT, PREEMPTING_PERCENT = 90.0, 97.0  # of the KV cache
#: Percent of each vCPU by size of T2, without credits (AWS: CPU credits and baseline utilization).
T2_BASELINES = {"medium": 20.0, "large": 30.0, "xlarge": 22.5, "2xlarge": 17.0}

# How long something takes.
WARMING = timedelta(minutes=10)  # model servers, caches and compilers settle after a start
NO_FASTER = 0.8  # of the first requests' time: from there on later ones are no faster (assumed)
CLOSELY = 3  # periods well served after instances were added: what is bad later is not their start
SCALING_REACTS = timedelta(minutes=10)  # an alarm takes three, an instance several more to start
SCALES_IN = timedelta(minutes=15)  # target tracking's alarm (AWS: fifteen datapoints of a minute)
CREATING, CREATING_LONG = timedelta(minutes=10), timedelta(minutes=30)  # a large image takes long
OLD_FLEET = timedelta(hours=1)  # a blue/green deployment keeps the old one for a while
BEFORE_UPDATE = 15  # periods by which is judged what was so before an update
REACHED = timedelta(hours=1)  # an update's start to what it does: its fleet starts, or gets more
HALF, BY_UPDATE = 0.5, 0.25  # share of periods that are slow, and of it at most without the update
PAUSE, LONGER_PAUSE = timedelta(minutes=5), 5  # and so many times the usual distance of requests
TURNS_APART = timedelta(hours=1)  # of scaling that flaps: a day has two
EDGE = timedelta(minutes=5)  # of a window: what begins in it may have been there before
DAY, ASKED = timedelta(days=1), timedelta(hours=1)  # of a window that has its peak: with requests
LOOK_BACK = timedelta(minutes=15)  # what began before the window may still be felt in it
DEPLOYMENT = timedelta(hours=8)  # longest from a configuration's creation to the deployment's end

# Load, as a ratio.
# Of requests in flight CloudWatch has the maximum of a period, above what scaling sees of it.
TOO_MUCH_LOAD, TOO_MUCH_IN_FLIGHT = 1.2, 1.5  # times the target: the load alone is too much
PASSED = 1.05  # times the target, where the instances are full: scaling has a reason to act
SAME_LOAD = 1.25  # up to which it is the same; from which a rhythm is the callers'
WAVES, NO_TREND = 1.6, 0.3  # the same of a load that goes up and down: Kendall's tau at most
FEW_BESIDE = 0.1  # of a period's requests, or errors: beside it they begin or end (assumed)
SAME_RATE = 1.1  # rate or utilization is the same
MORE_ARRIVALS, EVEN = 1.2, 0.06  # what comes differs by more, and what a limit lets in by less
SPIKE = 3.0  # times the median traffic
TARGET_EXCEEDED = 3.0  # nobody mistakes it for noise; for less an update may hold scaling back
PROPORTION = 4  # no fleet is advised that is so many times as large as it was or may be (assumed)
OF_LOAD_TEST = 0.5  # full at less than this share of what a load test found: not by the load
FILLS_A_CPU = 0.5  # requests in work on an instance at once, in the mean
INFREQUENT, FEW = 5.0, 60.0  # requests a minute; AWS names no number: a cause, and perhaps one

# Latency and what waits, as ratios.
DOUBLED, TAIL, GROWN_QUEUE, NEW_VERSION = 2.0, 3.0, 1.5, 1.3
SLOWER, SLOWER_AFTER_PAUSE = 2.0, 1.5  # than otherwise
SLOW_INSTANCE, SLOW_ZONE, SLOW_HOST = 2.0, 1.5, 2.0  # times the others
MANY_TIMES = 3.0  # the endpoint's own fast periods, where no limit is stated
SPARE_OF_WORKERS = 0.05  # of the time of workers that have a queue
FEW_CPUS, WHOLE, WAITING = 4, 0.1, 1.5  # a whole number of so many CPUs, and so many more in work
WHOLE_DELAY = 1.05  # of a batch's delay: a timer fires a little early or is rounded
QUEUE_SPREAD = 1.5  # from p50 to p99 at least, where requests wait for each other
MANY_IN_WORK = 10.0  # requests on an instance in the mean: no moment of arrival is seen in them
SAME_CALLERS = 1.5  # up to which rate times latency is that of callers who wait for each answer
OUTSIDE, OUTSIDE_MS = 0.25, 5.0  # more than what a zone and a TLS connection may cost
#: Time limits that callers set: 60 s is botocore's and 70 s what AWS advises beside SageMaker's 60 s.
READ_TIMEOUTS_MS = tuple(
    1000.0 * seconds for seconds in (5, 10, 15, 20, 30, 45, 60, 70, 90, 120, 180, 300, 600, 900)
)
TO_THE_DIGIT = 1.01  # and the answer of the next attempt
LATE_MS = 6000  # a tenth of the time limit: slow by what makes others reach it
LONGEST_MS, WRONG_UNIT = (
    60_000,
    1000**0.5,
)  # of a threshold: nearer to a factor of 1,000 than to one
TIME_LIMITS_MS = ((58_000, 62_000), (470_000, 490_000))  # 60 s; of a stream 8 minutes

# Patterns over time.
SIGNIFICANT = 0.01  # chance of a rhythm in a window without one, corrected for all rhythms tried
CYCLES, KEPT = 4, 0.7  # of a rhythm, and the share of them (or of pauses) that must be slow
BURSTS_EXPLAINED = 0.5  # by the rhythm: else it is one among other troubles
SPARSE_CYCLES = 10  # with few requests a percentile is the slowest of them
BESIDE = 0.5  # periods from the rhythm's place
SLOW_AFTER_ONE, SLOW_ELSEWHERE = 2, 0.1  # periods after a pause alone, share of the others
BY_CHANCE = 0.3  # share of slow periods that follow no pause
SHARE_OF_SCATTERED = 0.1  # of all requests, in single slow periods: a few are anyone's
TAU = 0.65  # Kendall's, of twelve blocks: by chance once in five hundred windows (z = 2.9)
BLOCKS, LEAST_BLOCKS, BLOCK = 12, 8, 3  # blocks of a window, and periods of a block
STEP = 0.4  # share of the whole that no rise between two blocks has: else it is a step
NEAR_LIMIT = 0.5  # of the limit, from which growth within it is worth a word
# Percent of memory in the mean of the instances, which fill one after another: nearly full, and by
# how much it climbs and falls.
TOOTH_PERCENT, SWING = 80.0, 20.0
ABRUPT, CLIMB = 3, 2  # periods of a fall; a climb takes so many times longer
TEETH, RESTARTS = 2, 0.6  # at least, and the share of them that restarts explain
BATCHES = 3  # of new instances, each of them slow at first
TURNS = 2  # of scaling, soon after another
PART_LOST = 0.15  # of a fleet: the smallest part that a zone is, of six
BEFORE, AFTER = 10, 3  # periods that are compared around the loss of instances
AT_ONCE = 5  # periods: after a longer pause nobody knows when they went
