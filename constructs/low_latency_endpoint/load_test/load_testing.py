"""A whole load test from this machine: look at the fleet, send, read CloudWatch, say what limits.

Examples
--------
As in docs/load-tests.md, whose lines a test runs::

    report = load_test(
        Target("sentiment", "us-east-1"), Payloads.of_bytes(b'{"inputs": "hello"}'),
        rate_plan([50, 100], seconds=10))
    write_page(report, Path("report.html"))
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from ..operations.diagnosis.asking import Account
from ..operations.sessions import open_clients
from .joined_metrics import Fleet, JoinedMetrics, read_fleet, read_joined
from .payloads import Payloads
from .result_file import LoadTestReport
from .run_plans import RunPlan
from .running import Emit, run
from .saturation import verdicts
from .steps import Generator, Target

__all__ = ["load_test"]

Open = Callable[[], Generator]


def load_test(target: Target, payloads: Payloads, plan: RunPlan, *, processes: int = 1,
              profile: str | None = None, generator: Open | None = None,
              metrics_wait: float | None = 180.0, emit: Emit = lambda event: None,
              say: Callable[[str], None] = lambda text: None,
              peak_tps: float | None = None,
              safety_factor: float | None = None) -> LoadTestReport:
    """Test an endpoint under load.

    Parameters
    ----------
    target : Target
    payloads : Payloads
    plan : RunPlan
    processes : int
        Of the generator on this machine.
    profile : str, optional
        Of the AWS CLI's configuration.
    generator : callable, optional
        Opens another generator, such as a fleet's; it is closed here. By default processes of this
        machine.
    metrics_wait : float or None
        Seconds to wait for CloudWatch at most; ``None`` to leave it out.
    emit, say : callable
        Are told of the steps, and of what is done before and after them.
    peak_tps, safety_factor : float, optional
        What the endpoint is to hold, for the throughput of the result.

    Raises
    ------
    ConfigurationError
        ``LLE581`` without such an endpoint, ``LLE583`` without credentials, ``LLE954`` when it
        answers nothing, and the generator's.
    """
    say("Reading the endpoint")
    client, region = open_clients(profile, target.region)
    account = Account(client, lambda text: None)
    fleet = read_fleet(account, target.endpoint_name, target.target_variant, region)
    if plan.search is not None and plan.search.instances is None:
        plan = replace(plan, search=replace(plan.search, instances=fleet.instances or 1))
    with ExitStack() as stack:
        say("Starting the load generator")
        opened = generator() if generator is not None else _processes(
            target, payloads, processes, profile)
        stack.callback(opened.close)
        done = run(plan, opened, emit)
    metrics, after = JoinedMetrics(), None
    if done.steps and metrics_wait is not None and not done.interrupted:
        say("Reading CloudWatch")
        try:
            metrics = read_joined(
                account, target.endpoint_name, fleet,
                start=done.started_at, end=done.ended_at, wait=metrics_wait, progress=say,
                answers=sum(each.result.completed for each in done.steps))
            after = _after(account, target, fleet, region)
        except KeyboardInterrupt:  # nobody wants to wait; what was measured is measured
            metrics = JoinedMetrics(unknown=("CloudWatch: interrupted",))
    return LoadTestReport(
        target, done, fleet, metrics, verdicts(done, fleet, metrics, after), payloads.source,
        peak_tps, safety_factor)


def _after(account: Account, target: Target, fleet: Fleet, region: str) -> Fleet | None:
    if fleet.instances is None:
        return None
    return read_fleet(account, target.endpoint_name, fleet.variant, region)


def _processes(target: Target, payloads: Payloads, processes: int,
               profile: str | None) -> Generator:
    import boto3

    from .generator_process import GeneratorProcess

    # Without a profile the processes find credentials as this one does.
    session = boto3.Session(profile_name=profile) if profile else None
    return GeneratorProcess(target, payloads, processes, session=session)
