"""Faults during updates, roll-backs, scale-outs and rolling batches, and the findings they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .faults.endpoints import saturated
from .faults.fault import fault, from_minute, slow
from .scenarios import CONFIGURATION, Scaled, Scenario, Update, constant
from .steady_faults import FAULTS

_FAILS = {"Invocation5XXErrors": constant(0.3), "InvocationModelErrors": constant(0.3)}
_REJECTS = {"Invocation4XXErrors": constant(0.3), "InvocationModelErrors": constant(0.3)}
_ALARM = ("ModelLatency-p99",)
_APART = "ModelLatency p99 1,637 ms in the fleet of sentiment-config-3, 82 ms in that of"
_ROLLS_BACK = "aws cloudwatch set-alarm-state --alarm-name ModelLatency-p99"


def always(milliseconds: float) -> Callable[[int, int], float]:
    """The latency of each instance."""
    return lambda minute, instance: milliseconds


def steps(first: int, length: int, *values: float) -> Callable[[int], float]:
    """One value after another, each for so many minutes; the last one stays."""
    return lambda minute: values[min(max(0, (minute - first) // length), len(values) - 1)]


def updated(*, of: Callable[..., Scenario] = Scenario, **update: Any) -> Scenario:
    """A new fleet that is asked from minute 20 on, slow unless it is said otherwise."""
    return of(update=Update(**({"latency": always(800)} | update)))


def rolled(cold: int = 0, **update: Any) -> Scenario:
    """Six instances replaced one by one, each six minutes after the last, slow for so many of them."""

    def of_batch(minute: int, instance: int) -> float:
        newest = (minute - 20) // 6
        return 800 if (minute - 20) % 6 < cold and instance >= min(newest, 5) else 40

    return Scenario(
        tps=constant(450),
        instances=lambda m: max(1, 5 - (m - 20) // 6) if m >= 20 else 6,
        update=Update(
            **(
                {
                    "latency": of_batch,
                    "share": steps(20, 6, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1),
                    "instances": steps(20, 6, 1, 2, 3, 4, 5, 6),
                }
                | update
            )
        ),
    )


def scaled_out(**update: Any) -> Scenario:
    """Cold instances of the old fleet, a quarter of an hour after the new one was asked first."""
    return Scenario(
        tps=from_minute(20, 500, 1000),
        instances=from_minute(37, 5, 8),
        cpu=from_minute(20, 30, 55),
        latency=slow(37, 44, 400, instances=range(5, 8)),
        activities=[Scaled(31, 8, took=6)],
        update=Update(begun=10, asked=15, **update),
    )


def slow_before(**update: Any) -> Scenario:
    """Both fleets wait for something, since long before the update."""
    return Scenario(
        latency=slow(15, 60, 300),
        in_flight=from_minute(15, 24, 180),
        update=Update(begun=53, asked=55, latency=always(300), **update),
    )


_ROWS = {
    "LLD706: a slow model bakes": fault(
        f"the update to sentiment-config-3 is under way since 03:15 (Baking) & {_APART}",
        _ROLLS_BACK,
        of=updated,
        alarms=_ALARM,
    ),
    "LLD706: a slow model bakes, fleets not apart": fault(
        "under way since 03:15 & p99 above 160 ms",
        "deployment.rollback_on_alarms: true",
        of=updated,
        apart="",
    ),
    "LLD706: a slow model bakes beside a first fleet without series": fault(
        "1,637 ms in the fleet of sentiment-config-3, 82 ms before", of=updated, apart="new"
    ),
    "LLD706: a slow canary of a twentieth": fault(_APART, of=updated, share=constant(0.05)),
    "LLD706: a slow canary that p99 of the whole does not show": fault(
        "1,488 ms in the fleet of sentiment-config-3, 82 ms", of=updated, share=constant(0.005)
    ),
    "LLD706: traffic that shifts in steps to a slow model": fault(
        "p99 above 160 ms", of=updated, apart="", share=steps(20, 10, 0.05, 0.25, 0.5, 0.75)
    ),
    "LLD706: batches of a slow model": fault(
        "in the fleet of sentiment-config-3", of=rolled, latency=always(800)
    ),
    "LLD706: batches of a slow model, fleets not apart": fault(
        "p99 above 160 ms", of=rolled, latency=always(800), apart=""
    ),
    "LLD706: a failing model bakes": fault(
        "30 % of the requests to the fleet of sentiment-config-3 end in 5XX errors, 0 % to",
        of=updated,
        latency=always(40),
        errors=_FAILS,
    ),
    "LLD706: a failing model bakes, fleets not apart": fault(
        "of the requests end in 5XX errors, 0 % before",
        of=updated,
        latency=always(40),
        errors=_FAILS,
        apart="",
    ),
    "LLD706: a version that rejects what callers send": fault(
        "end in 4XX errors", of=updated, latency=always(40), errors=_REJECTS
    ),
    "LLD706: a version that answers nothing in time": fault(
        "end in model errors that are neither",
        of=updated,
        latency=always(40),
        errors={"InvocationModelErrors": constant(0.2)},
    ),
    "LLD706: a slow model that fails, too": fault(
        f"{_APART} & end in 5XX errors", of=updated, errors=_FAILS
    ),
    "LLD706: a version that fills its instances at the same load": fault(
        "in the fleet of sentiment-config-3",
        of=saturated,
        tps=constant(600),
        latency=always(40),
        update=Update(begun=20, asked=25, latency=always(300)),
    ),
    "LLD706: SageMaker's maintenance brings slow instances": fault(
        "SageMaker's maintenance is under way since 03:15",
        of=updated,
        status="SystemUpdating",
        configuration=CONFIGURATION,
    ),
    "LLD706: a slow model where nobody states a limit": fault(
        "ModelLatency, typical, 801 ms in the fleet of sentiment-config-3, 40 ms in that of",
        thresholds={},
        planned=None,
        update=Update(latency=always(800)),
    ),
    "LLD706: slow instances that came with the update": fault(
        "in the fleet of sentiment-config-3",
        enhanced=True,
        update=Update(latency=always(800), apart="", instances=constant(1), share=constant(0.1)),
    ),
    "LLD706: a young update": fault(f"{_APART[:13]}", of=updated, begun=47, asked=52, over=45),
    "LLD706: a new fleet that is slow after an hour and more": fault(
        "1,634 ms in the fleet of sentiment-config-3, 82 ms in that of",
        minutes=120,
        update=Update(latency=slow(90, 120, 800)),
    ),
    "LLD707: a slow model is rolled back": fault(
        "SageMaker is rolling back from sentiment-config-3 & an alarm went off & sentiment-config-2 "
        "serves again & in the fleet of sentiment-config-3",
        failure="an alarm went off",
        update=Update(
            latency=lambda m, i: 800 if m < 50 else 40,
            status="RollingBack",
            stage="Updating",
            share=lambda m: 0.5 if m < 50 else 0.02,
            alarms=_ALARM,
        ),
    ),
    "LLD707: batches that fail are rolled back, which is told as the begin": fault(
        "to the fleet of sentiment-config-3 end in 5XX errors",
        of=rolled,
        begun=50,
        asked=20,
        status="RollingBack",
        stage="Updating",
        latency=always(40),
        errors=_FAILS,
    ),
    "LLD707: a fleet that did not start is rolled back": fault(
        "SageMaker is rolling back", of=updated, status="RollingBack", told=False, asked=99
    ),
    "LLD708: a slow model that was rolled back": fault(
        "sentiment-config-3 served from 03:20 to 03:35 & this ended at 03:35 & p99 above 160 ms",
        of=updated,
        ended=35,
    ),
    "LLD708: a failing model that was rolled back": fault(
        "this ended at 03:35 & end in 5XX errors",
        of=updated,
        latency=always(40),
        errors=_FAILS,
        ended=35,
        apart="new",
    ),
    "LLD121: batches that are cold for two minutes each": fault(
        "within 10 minutes of the update to sentiment-config-3", of=rolled, cold=2
    ),
    "LLD121: batches that are cold for three minutes each": fault(
        "within 10 minutes of the update to sentiment-config-3", of=rolled, cold=3, apart=""
    ),
    "LLD121: a new fleet that was cold, and is warm": fault(
        "within 10 minutes of the update to sentiment-config-3",
        of=updated,
        latency=lambda m, i: 800 if m < 27 else 40,
    ),
    "LLD121: the old fleet's new instances are cold while an update bakes": fault(
        "within 10 minutes of the scale-out to 8 instances", of=scaled_out
    ),
    "LLD123: slow since before the update": fault("p99 above 160 ms", of=slow_before, over=60),
    "LLD123: slow since before the update, fleets not apart": fault(
        "p99 above 160 ms", of=slow_before, apart="", over=60
    ),
    "LLD102: full since before the update": fault(
        "all 8 instances", of=saturated, update=Update(begun=45, asked=50, latency=always(300))
    ),
    "LLD102: full by a load that rises as the update begins": fault(
        "all 8 instances",
        of=saturated,
        update=Update(begun=20, asked=24, latency=slow(25, 60, 300)),
    ),
    "LLD102: the same, fleets not apart": fault(
        "all 8 instances",
        of=saturated,
        update=Update(begun=20, asked=24, latency=slow(25, 60, 300), apart=""),
    ),
    "LLD402: the old fleet alone fails": fault(
        "5XX errors",
        errors={
            "Invocation5XXErrors": from_minute(30, 0, 0.3),
            "InvocationModelErrors": from_minute(30, 0, 0.3),
        },
        update=Update(),
    ),
    "LLD402: errors while the new fleet is being created": fault(
        "5XX errors",
        errors={
            "Invocation5XXErrors": from_minute(40, 0, 0.3),
            "InvocationModelErrors": from_minute(40, 0, 0.3),
        },
        update=Update(begun=38, asked=60, stage="Creating", apart=""),
    ),
}
UPDATE_FAULTS = tuple(row(*key.split(": ", 1)) for key, row in _ROWS.items())
ALL_FAULTS = (*FAULTS, *UPDATE_FAULTS)
