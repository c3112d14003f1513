"""How Application Auto Scaling changes the capacity of a SageMaker variant.

The rules, in the order in which they are applied:

1. **One update at a time.** While an endpoint is updating, its capacity does not change.
2. **Limits.** A capacity outside of minimum and maximum is moved to the nearer of the two at once: by
   a scheduled action or a changed limit, whatever the cooldowns (:func:`within`).
3. **Alarms.** Scale out after three datapoints in a row above the target; scale in after fifteen
   minutes below nine tenths of it. An alarm calls its policy when it changes to ALARM, and each
   minute that it stays there (:func:`calls_policy`).
4. **Capacity.** The load of the latest period over the target, rounded up; for scale-in the largest
   load of the fifteen minutes (:func:`wanted_capacity`).
5. **Cooldowns** (:class:`Cooldowns`). They begin when an activity has succeeded. During the one for
   scale-out only a larger scale-out is made. The one for scale-in holds only scale-in back, and a
   scale-out ends it.

Sources: Application Auto Scaling user guide, "How target tracking scaling works", "How step scaling
works", "Scheduled scaling", "Scaling activities"; its API reference,
TargetTrackingScalingPolicyConfiguration; SageMaker developer guide, "Define a scaling policy" and
"Update endpoints that use automatic scaling"; CloudWatch user guide, "Alarm actions".

AWS leaves three things open. What is chosen here holds back more:

- How a target becomes a capacity: AWS publishes no formula. The load of a period is all of its
  requests, or the metric times the instances that served in it. The present capacity counts an
  instance twice that has begun to serve since.
- What is a larger scale-out: one that adds more instances than the one that began the cooldown.
- Whose the cooldowns are: the scalable target's, so that they hold back all of its policies.

The library and the local AWS do not import each other, so each of them has this file. A test keeps
the two copies equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

OUT_DATAPOINTS = 3
IN_MINUTES = 15
IN_SHARE = 0.9
DEFAULT_COOLDOWN = 300.0  # seconds, where a policy states none
_CALL_SECONDS = 60.0
_ROUNDING = 1e-9


def within(capacity: int, minimum: int, maximum: int) -> int:
    """The capacity nearest to this one that the limits allow."""
    return max(minimum, min(maximum, capacity))


def calls_policy(seconds_in_alarm: float, period: float) -> bool:
    """Whether an alarm that is judged once in a period calls its policy now.

    Examples
    --------
    >>> [seconds for seconds in range(0, 130, 10) if calls_policy(seconds, 10)]
    [0, 60, 120]
    """
    return seconds_in_alarm % _CALL_SECONDS < period


def wanted_capacity(load: float, target: float) -> int:
    """The capacity that brings a load to the target of each instance.

    Examples
    --------
    >>> wanted_capacity(18.0, 6.0), wanted_capacity(18.5, 6.0), wanted_capacity(0.0, 6.0)
    (3, 4, 0)
    """
    return math.ceil(load / target - _ROUNDING)


@dataclass
class Cooldowns:
    """What the last activities of a scalable target hold back, and until when.

    Examples
    --------
    A scale-out of two ends at 100 s. Until 400 s one of three is made, and one of two is not. AWS's
    example of steps is the same: of a step of three, only one instance is added to the two.

    >>> cooldowns = Cooldowns()
    >>> cooldowns.end(100.0, change=2, cooldown=300.0)
    >>> [cooldowns.hold(399.0, change) for change in (2, 3, -1)], cooldowns.hold(400.0, 2)
    ([True, False, False], False)
    >>> cooldowns.step_base(399.0, capacity=5)
    3
    """

    out_until: float = -math.inf
    out_change: int = 0  # instances that the scale-out asked for which began the cooldown
    in_until: float = -math.inf

    def step_base(self, now: float, capacity: int) -> int:
        """The capacity that a step is added to: in a cooldown, without what began it."""
        return max(0, capacity - self.out_change) if now < self.out_until else capacity

    def hold(self, now: float, change: int) -> bool:
        """Whether they hold back a change of so many instances."""
        if change > 0:
            return now < self.out_until and change <= self.out_change
        return now < self.in_until

    def begin(self, change: int) -> None:
        """A policy's activity has begun."""
        if change > 0:
            self.in_until = -math.inf

    def end(self, now: float, change: int, cooldown: float) -> None:
        """A policy's activity has succeeded; the cooldown is that of the policy."""
        if change > 0:
            self.out_until = now + cooldown
            self.out_change = change
        else:
            self.in_until = now + cooldown
