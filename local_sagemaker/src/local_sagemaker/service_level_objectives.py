"""CloudWatch Application Signals: its service level objectives, which are kept and not evaluated.

moto does not have the service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .application import Caller, Operation, OwnService
from .cloudwatch.limits import problems_of_queries
from .protocols import Invalid, ServiceError

# Source: API reference, CreateServiceLevelObjective.
_WEEK = {"RollingInterval": {"DurationUnit": "DAY", "Duration": 7}}
_GOAL = {"Interval": _WEEK, "AttainmentGoal": 99.0, "WarningThreshold": 50.0}

Objective = dict[str, Any]
_kept: dict[tuple[str, str], dict[str, Objective]] = {}


def reset() -> None:
    _kept.clear()


def _there(caller: Caller) -> dict[str, Objective]:
    """The objectives of the caller's account and Region, by name."""
    return _kept.setdefault(caller.place, {})


def _create(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    name, there = request["Name"], _there(caller)
    _check(request)
    if "SliConfig" not in request:
        raise Invalid("An objective without SliConfig is not emulated by the local AWS")
    if name in there:
        raise ServiceError(f"An SLO named {name} already exists", "ConflictException", 409)
    there[name] = {
        "Arn": f"arn:aws:application-signals:{caller.region}:{caller.account}:slo/{name}",
        "CreatedTime": caller.now(),
        "EvaluationType": "PeriodBased",
        "Name": name,
        "Tags": request.get("Tags", []),
        **_stated(caller, request),
    }
    return {"Slo": there[name]}


def _check(request: dict[str, Any]) -> None:
    """Refuse what the page of an objective's queries refuses of all of them."""
    metric = request.get("SliConfig", {}).get("SliMetricConfig", {})
    for problem in problems_of_queries(metric.get("MetricDataQueries", []), one_result=True):
        raise Invalid(problem)


def _stated(caller: Caller, request: dict[str, Any]) -> Objective:
    """What a request says of an objective, in the words of the answers."""
    kept = ("BurnRateConfigurations", "Description")
    stated: Objective = {name: request[name] for name in kept if name in request}
    if sli := dict(request.get("SliConfig", {})):
        stated["Sli"] = {"SliMetric": sli.pop("SliMetricConfig"), **sli}
    goal = {**_GOAL, **request.get("Goal", {})}
    return {**stated, "Goal": goal, "LastUpdatedTime": caller.now()}


def _of(change: Callable[[Caller, Objective, dict[str, Any]], dict[str, Any] | None]) -> Operation:
    """An operation on the objective that a request names, by its name or ARN."""

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any] | None:
        named = str(request.get("Id") or request["ResourceArn"])
        objective = _there(caller).get(named.rpartition("/")[2])
        if objective is None:
            code = "ResourceNotFoundException"
            raise ServiceError(f"There is no SLO {named}", code, 404)
        return change(caller, objective, request)

    return operation


def _update(caller: Caller, objective: Objective, request: dict[str, Any]) -> dict[str, Any]:
    _check(request)
    if "RequestBasedSliConfig" in request:
        raise Invalid(f"The SLO {objective['Name']} is period-based, and stays so")
    objective |= _stated(caller, {"Goal": objective["Goal"], **request})
    return {"Slo": objective}


def _delete(caller: Caller, objective: Objective, _: dict[str, Any]) -> None:
    del _there(caller)[objective["Name"]]


def _tag(_: Caller, objective: Objective, request: dict[str, Any]) -> None:
    new = request.get("Tags", [])
    gone = {*request.get("TagKeys", []), *(tag["Key"] for tag in new)}
    objective["Tags"] = [tag for tag in objective["Tags"] if tag["Key"] not in gone] + new


APPLICATION_SIGNALS = OwnService(
    "application-signals",
    {
        "CreateServiceLevelObjective": _create,
        "DeleteServiceLevelObjective": _of(_delete),
        "GetServiceLevelObjective": _of(lambda _, objective, __: {"Slo": objective}),
        "ListTagsForResource": _of(lambda _, objective, __: {"Tags": objective["Tags"]}),
        "TagResource": _of(_tag),
        "UntagResource": _of(_tag),
        "UpdateServiceLevelObjective": _of(_update),
    },
    complete=True,
)
