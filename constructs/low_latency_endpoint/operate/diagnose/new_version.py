"""A new version that is slower than the former, also where it fills the instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from ...account.metrics import median
from ...report.numbers import milliseconds, readable
from . import thresholds as const
from .findings import Evidence, Finding
from .measurements import ObservedDeployment
from .saturated import full_path
from .slow_container import busy_workers
from .view import VariantView

_WITH_ROOM = ("ModelLatency high", "instances not saturated")


def new_version(view: VariantView) -> Iterator[Finding]:
    """Slow or full from a deployment to the end of the window, and not before.

    Full instances are slow at a higher load, too: there the load must have been the same before.
    """
    for deployment in view.measurements.deployments:
        load = _same_load(view, deployment, view.bad_times) if view.full else ""
        if load is None or not _lasted(view, deployment):
            continue
        if shown := _slower_since(view, deployment, load):
            full = (view.full,) if view.full else ()
            root = full_path(view) if view.full else _WITH_ROOM
            finding = view.cause("LLD702", *view.slow_evidence(), *full, shown, root=root)
            yield _with_queue(view, finding)
            return


def _with_queue(view: VariantView, finding: Finding) -> Finding:
    """What shows that requests queue for the new version's workers, as it may have fewer."""
    queue = busy_workers(view, view.bad_times)
    if not queue:
        return finding
    words = f"{queue}: they queue for workers, of which the new version may have fewer"
    return replace(finding, evidence=(*finding.evidence, view.over(view.bad_times, words)))


def with_deployment(view: VariantView, finding: Finding, times: list[datetime]) -> Finding:
    """The finding about full instances, with the deployment that these times begin with.

    It is the cause perhaps: too recent to judge, or requests take hardly longer since.
    """
    m = view.measurements
    if m.end - times[-1] > const.PERIODS * view.period:
        return finding
    for deployment in m.deployments:
        load = _same_load(view, deployment, times)
        if deployment.first or load is None:
            continue
        name = f"the deployment of {deployment.configuration} at {m.clock(deployment.time)}"
        shown = view.over(times, f"it began with {name}{load}")
        advice = f"Since {name}: roll back if the previous version served this load."
        besides = f"{advice} {finding.besides}".strip()
        return replace(finding, evidence=(*finding.evidence, shown), besides=besides)
    return finding


def _slower_since(view: VariantView, deployment: ObservedDeployment, load: str) -> Evidence | None:
    """What shows that requests take longer since a deployment; ``None`` where they do not."""
    bad, m = view.bad_times, view.measurements
    since = [time for time in bad if time > deployment.time - view.period]
    was = view.typical.without(view.refusing).between(m.start, deployment.time).median
    now = view.typical.between(deployment.time, m.end).median
    if deployment.first or not bad or len(since) < 0.9 * len(bad):
        return None
    if was is None or now is None or now < const.NEW_VERSION * was:
        return None
    whole = view.whole
    before = sum(time <= deployment.time - view.period for time in whole.bad_times)
    kind = "slow period" if whole.slow_times else "period of full instances"
    words = (
        f"median of the typical ModelLatency {milliseconds(was)} before {m.clock(deployment.time)}, "
        f"{milliseconds(now)} since, and {before or 'no'} {kind}{'s' * (before > 1)} before{load}; "
        f"{deployment.configuration} was deployed then ({deployment.how})"
    )
    return Evidence(words, deployment.time, m.end)


def _lasted(view: VariantView, deployment: ObservedDeployment) -> bool:
    """Whether at least half of the periods after the new fleet's start were slow or full.

    Around the threshold the slow periods come in several time windows.
    """
    settled = deployment.done + const.WARMING
    if view.measurements.end - settled <= 3 * view.period:
        return False
    late = [time for time in view.whole.bad_times if time > settled]
    judged = [time for time in view.typical.times if time > settled]
    return len(late) >= 0.5 * len(judged)


def _same_load(
    view: VariantView, deployment: ObservedDeployment, times: list[datetime]
) -> str | None:
    """The load of an instance before a deployment and at these times since, in words.

    ``None`` where the former version did not serve as much in time for a while, where nobody knows, and
    where these times began before the deployment. Its load may have been lower for most of the window.
    """
    lead = [time for time in times if time <= deployment.time - view.period]
    near = [time for time in lead if time >= deployment.time - const.PERIODS * view.period]
    if len(near) > 1 or len(lead) > 0.1 * len(times):
        return None
    load = view.load or view.tps
    now = load.only(times).median
    if now is None:
        return None
    served = load.without({*view.whole.bad_times, *view.refusing})
    before = served.between(view.measurements.start, deployment.time)
    as_much = [value for value in before.points.values() if now <= const.SAME_RATE * value]
    was = median(as_much)
    if not was or len(as_much) < const.PERIODS:
        return None
    unit = "invocations per instance and minute" if view.load else "requests a second"
    return f", at {readable(was, 3)} {unit} before and {readable(now, 3)} since"
