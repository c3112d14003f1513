"""What happened to the fleet, when new instances began to serve, and what that explains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...account.metrics import Series
from ...errors import AWS_DOCS
from ...report.numbers import milliseconds
from .findings import GUIDE, Evidence, Finding, Remedy, kind
from .measurements import Activity, Measurements
from .silent_path import no_path
from .view import WARMING, VariantView

#: Share of slow periods that must lie after the starts for these to explain them.
MOST = 0.8


@dataclass(frozen=True, slots=True, order=True)
class Start:
    """New instances served from ``first`` on, and until ``last`` more of them came."""

    first: datetime
    last: datetime
    why: str

    @property
    def deployment(self) -> bool:
        """Whether a deployment replaced the fleet."""
        return self.why.startswith("the deployment")


def instance_starts(view: VariantView) -> list[Start]:
    """All starts of the window, the earliest first.

    Deployments and scaling activities say why. Instances that came without either, say by
    UpdateEndpointWeightsAndCapacities, show in the count of those that serve, and in metrics per
    instance.
    """
    found = [
        Start(each.time, each.done, f"the deployment of {each.configuration}")
        for each in view.measurements.deployments
    ]
    told = [(each.first, each.last) for each in found]
    for activity in scale_outs(view):
        # AWS documents no order of its end and the first request: what was seen counts.
        end = activity.end or activity.start
        near = activity.start - view.period, end + WARMING
        seen = [each.time for each in view.whole.rises if near[0] <= each.time <= near[1]]
        first, last = (min(seen), max(seen)) if seen else (activity.start, end)
        found.append(Start(first, last, f"the scale-out to {activity.capacity} instances"))
        told.append((activity.start, max(last, end)))
    counted = [
        Start(rise.time, rise.time, f"the rise from {rise.few} to {rise.more} instances")
        for rise in view.whole.rises
    ]
    for start in (*counted, *_first_seen(view)):
        if not any(first - WARMING <= start.first <= last + WARMING for first, last in told):
            found.append(start)
            told.append((start.first, start.last))
    return sorted(found)


def after_starts(view: VariantView, slow: list[datetime]) -> list[Start]:
    """The starts that explain slow periods: these follow them closely; none, when they do not."""
    all_starts = instance_starts(view)
    explained: dict[Start, int] = {}
    for time in slow:
        for start in reversed(all_starts):
            if start.first - view.period < time <= start.last + WARMING:
                explained[start] = explained.get(start, 0) + 1
                break
    if not explained or sum(explained.values()) < MOST * len(slow):
        return []
    for start in explained:
        # Slow before it already: then it is no consequence, whatever came after.
        lead = [t for t in slow if start.first - 5 * view.period <= t <= start.first - view.period]
        if len(lead) >= 2:
            return []
    return sorted(explained)


def scale_outs(view: VariantView) -> list[Activity]:
    """Successful activities that added instances."""
    found = []
    for each in sorted(view.activities, key=lambda activity: activity.start):
        if each.status not in ("Successful", "InProgress", "Overridden"):
            continue
        if each.capacity is None or "scale in" in each.cause.lower():
            continue
        before = _capacity_before(view, each)
        # Begun before the window: then the alarm's name is all there is.
        rose = "alarmhigh" in each.cause.lower() if before is None else each.capacity > before
        if rose:
            found.append(each)
    return found


def _capacity_before(view: VariantView, activity: Activity) -> float | None:
    earlier = [
        a
        for a in view.activities
        if a.start < activity.start and a.capacity is not None and not a.failed
    ]
    if earlier:
        return max(earlier, key=lambda a: a.start).capacity
    # The period in which it began may hold the new instances already.
    seen = view.whole.instances.between(
        activity.start - timedelta(minutes=15), activity.start - view.period + timedelta.resolution
    )
    return round(seen.points[seen.times[-1]]) if seen else None


def _first_seen(view: VariantView) -> Iterator[Start]:
    for name, time in sorted(view.whole.arrivals.items(), key=lambda item: item[1]):
        yield Start(time, time, f"the start of {name}")


EARLY_ERRORS = kind(
    "LLD408",
    "New instances answer with errors until their model is loaded",
    (
        "four fifths of the failing periods (1 % of the requests) come within 10 minutes after "
        "instances start, none before, and they end"
    ),
    GUIDE + "your-algorithms-inference-code.html",
)
COLD_MODEL = kind(
    "LLD121",
    "New instances answer slowly until they are warm",
    (
        "four fifths of the slow periods come within 10 minutes after instances start (by "
        "scale-out, deployment, or their count or first metrics), and none before"
    ),
    GUIDE + "deployment-best-practices.html",
)
UPDATE_FAILED = kind(
    "LLD701",
    "The last deployment failed or was rolled back",
    "the endpoint is Failed, UpdateRollbackFailed or RollingBack, or names a reason",
    GUIDE + "deployment-guardrails.html",
)
NEW_VERSION = kind(
    "LLD702",
    "Slow since a deployment: the new version itself is slower",
    ("slow from a deployment to the end of the window, not before; p50 at least 1.3 times higher"),
    GUIDE + "deployment-guardrails.html",
)
OUT_OF_SERVICE = kind(
    "LLD705",
    "The endpoint is out of service",
    "its status is OutOfService",
    AWS_DOCS + "/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
MISSING = kind(
    "LLD703",
    "Fewer instances serve than are wanted",
    "InService with fewer instances than wanted",
    GUIDE + "deployment-best-practices.html",
)


@dataclass(frozen=True, slots=True)
class Event:
    """Something on the time axis, for the report."""

    time: datetime
    kind: str
    text: str
    end: datetime | None = None
    state: str = ""  # of the alarms
    names: tuple[str, ...] = ()  # of alarms, configuration or variant
    no_data: bool = False  # whether missing data alone changed the alarms


def events(measurements: Measurements) -> list[Event]:
    """Deployments, scaling activities and alarms on one time axis, within the window."""
    found = [
        Event(
            each.time,
            "deployment",
            f"{each.configuration} ({each.how})",
            names=(each.configuration,),
        )
        for each in measurements.deployments
    ]
    for variant in measurements.variants:
        for each in (variant.scaling.activities if variant.scaling else None) or ():
            refused = f" Not scaled: {', '.join(each.not_scaled)}." if each.not_scaled else ""
            text = f"{variant.name}: {each.description} {each.status}.{refused}"
            if each.failed and each.message:
                text += f" {each.message}"
            found.append(Event(each.start, "scaling", text, each.end, each.status, (variant.name,)))
    found += _alarms(measurements)
    return sorted(
        (e for e in found if measurements.start <= e.time <= measurements.end),
        key=lambda event: event.time,
    )


def _alarms(measurements: Measurements) -> Iterator[Event]:
    """Alarms that went on or off: those of a minute in a row, without first evaluations."""
    titles = {each.name: each.title for each in measurements.alarms or () if not each.of_scaling}
    rows: dict[tuple[datetime, str, bool], list[str]] = {}
    for each in sorted(measurements.transitions, key=lambda each: each.time):
        first = each.state == "OK" and each.before == "INSUFFICIENT_DATA"
        if each.alarm in titles and not first:
            row = each.time.replace(second=0, microsecond=0), each.state, each.no_data
            rows.setdefault(row, []).append(each.alarm)
    for (time, state, silent), names in rows.items():
        shown = ", ".join(dict.fromkeys(titles[name] for name in names))
        text = f"{state}{', without data' if silent else ''}: {shown}"
        yield Event(time, "alarm", text, None, state, tuple(names), silent)


def endpoint_state(measurements: Measurements) -> Iterator[Finding]:
    """Failed deployments, and instances that are wanted and not there."""
    status, reason = measurements.status, measurements.failure_reason
    if reason or status in ("Failed", "UpdateRollbackFailed", "RollingBack"):
        text = f"the endpoint is {status}" + (f': "{reason}"' if reason else "")
        yield Finding(
            UPDATE_FAILED,
            "",
            (Evidence(text),),
            "high",
            ("deployments", "failed"),
            (
                Remedy("startup_health_check_timeout", "if the container did not answer in time"),
                Remedy("model_data_download_timeout", "if the model did not arrive in time"),
                Remedy("deployment.rollback_on_alarms", value="true"),
            ),
            "The container's log in /aws/sagemaker/Endpoints/<name> says why it did not start.",
        )
        return
    if status == "OutOfService":
        yield Finding(
            OUT_OF_SERVICE,
            "",
            (Evidence("the endpoint is OutOfService: it takes no requests"),),
            "high",
            ("deployments", "out of service"),
            besides="Its log in /aws/sagemaker/Endpoints/<name> says why; then deploy again.",
        )
    yield from no_path(measurements)
    for variant in measurements.variants:
        wanted, there = variant.desired_instances, variant.current_instances
        if status == "InService" and wanted and there is not None and there < wanted:
            yield Finding(
                MISSING,
                variant.name,
                (
                    Evidence(
                        f"{there} of {wanted} instances in service while the endpoint is InService",
                        measurements.end,
                        measurements.end,
                    ),
                ),
                "medium",
                ("deployments", "instances missing"),
                (
                    Remedy("instance_type", "a type with more supply"),
                    Remedy("capacity_reservation_arn", "reserved instances come"),
                ),
                "Look again in some minutes: instances that are starting count as missing too.",
            )


def new_version(view: VariantView) -> Iterator[Finding]:
    """Slow from a deployment to the end of the window, and not before."""
    slow = view.slow_times
    for each in view.measurements.deployments:
        if each.first or not slow:
            continue
        after = [t for t in slow if t > each.time - view.period]
        before = view.typical.between(view.measurements.start, each.time)
        since = view.typical.between(each.time, view.measurements.end)
        lasted = view.measurements.end - each.done > WARMING + 3 * view.period
        # Around the threshold the slow periods come in several time windows.
        late = [t for t in view.whole.slow_times if t > each.done + WARMING]
        judged_late = [t for t in since.times if t > each.done + WARMING]
        if (
            len(after) < 0.9 * len(slow)
            or not before
            or not lasted
            or len(late) < 0.5 * len(judged_late)
        ):
            continue
        was, now = before.median, since.median
        assert was is not None
        assert now is not None
        at = view.measurements.clock(each.time)
        if now < 1.3 * was:
            continue
        yield view.finding(
            NEW_VERSION,
            "high",
            ("ModelLatency high", "instances not saturated", "since a deployment"),
            *view.slow_evidence(),
            Evidence(
                f"median of the typical ModelLatency {milliseconds(was)} before {at}, "
                f"{milliseconds(now)} since, and no slow period before; {each.configuration} was "
                f"deployed then ({each.how})",
                each.time,
                view.measurements.end,
            ),
            remedies=[
                Remedy("containers[].image", "back to the version before"),
                Remedy("containers[].data", "back to the model before"),
                Remedy(
                    "alarms.model_latency",
                    "a threshold below what was missed, so that alarms roll back",
                ),
                Remedy("deployment.rollback_on_alarms", value="true"),
                Remedy("deployment.canary.wait", "longer than the alarm takes to see it", "10m"),
            ],
            besides="Roll back: deploy the version before. Then compare both versions outside of "
            "SageMaker with the same requests.",
        )
        return


_NOT_YET = (
    "It has not recovered yet: look again 10 minutes after the start. If it is slow then, and a "
    "deployment was the start, roll back. "
)


def cold_start(view: VariantView) -> Iterator[Finding]:
    """Slow only in the minutes after new instances began to serve."""
    slow = view.slow_times
    found = after_starts(view, slow)
    if not found:
        return
    rest = view.typical.without(set(view.whole.slow_times))
    recovered = bool(rest.between(slow[-1], view.measurements.end))
    usual = f", {milliseconds(rest.median)} in the median otherwise" if rest.median else ""
    yield view.finding(
        COLD_MODEL,
        "high" if recovered else "medium",
        ("ModelLatency high", "instances not saturated", "after new instances started"),
        *view.slow_evidence(),
        Evidence(
            f"slow within {WARMING.seconds // 60} minutes of {named(view, found)}{usual}",
            found[0].first,
            slow[-1] + view.period,
        ),
        remedies=[
            *colder(found, "cold", " at the rise of traffic"),
            Remedy("containers[].environment", "have the server load and compile before /ping"),
        ],
        besides=(
            ("" if recovered else _NOT_YET)
            + "Warm the model before /ping answers, or send requests before callers do."
        ),
    )


def early_errors(view: VariantView, failed: Series, evidence: Evidence) -> Finding | None:
    """Errors only in the minutes after new instances began to serve, and not for good."""
    came = view.get("Invocations", "Sum")
    times = [t for t in came.times if failed.points.get(t, 0) >= 0.01 * came.points[t] > 0]
    found = after_starts(view, times)
    if not found or times[-1] == came.times[-1]:
        return None
    return view.finding(
        EARLY_ERRORS,
        "high",
        ("errors", "after new instances started"),
        evidence,
        f"errors within {WARMING.seconds // 60} minutes of {named(view, found)}, none before",
        times=times,
        remedies=[
            Remedy("containers[].environment", "answer /ping with 200 once the model is loaded"),
            *colder(found, "new", " at the rise of traffic"),
        ],
    )


def named(view: VariantView, found: list[Start]) -> str:
    """Starts in words, with their times: the first three."""
    clock = view.measurements.clock
    words = [
        f"{start.why} at {clock(start.first)}"
        + (f"-{clock(start.last)}" if start.last > start.first else "")
        for start in found[:3]
    ]
    more = len(found) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")


def colder(found: list[Start], fleet: str, when: str = "") -> Iterator[Remedy]:
    """What makes starts rarer, or lets fewer requests meet them."""
    if any(start.deployment for start in found):
        yield Remedy(
            "deployment.canary",
            f"a small part of the requests meets the {fleet} fleet",
            "{size_percent: 10, wait: 10m}",
        )
    if not all(start.deployment for start in found):
        yield Remedy("instances.min", f"more at all times: fewer starts{when}")
