"""Load tests of SageMaker endpoints: from one laptop to a fleet, with numbers that hold.

What users of the library import, they import from here. Names are imported on first use
(PEP 562), so that importing this package loads neither Locust nor gevent: Locust patches the
standard library of the process that imports it, which only ``SageMakerUser`` and
``InvocationFailed`` do. It imports ``settings``, ``account``,
``client``, ``simulate``, ``report`` and ``plan``; never ``aws_cdk``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compare.compare_routing import compare_routing as compare_routing
    from .compare.comparison_plan import ComparisonPlan as ComparisonPlan
    from .engine.arrivals import Arrivals as Arrivals
    from .engine.arrivals import ConstantArrivals as ConstantArrivals
    from .engine.arrivals import PoissonArrivals as PoissonArrivals
    from .engine.arrivals import RampArrivals as RampArrivals
    from .engine.arrivals import ReplayedArrivals as ReplayedArrivals
    from .engine.arrivals import SteppedArrivals as SteppedArrivals
    from .engine.generator_process import GeneratorProcess as GeneratorProcess
    from .engine.payloads import Payloads as Payloads
    from .engine.steps import Step as Step
    from .engine.steps import StepResult as StepResult
    from .engine.target import Target as Target
    from .engine.users import InvocationFailed as InvocationFailed
    from .engine.users import SageMakerUser as SageMakerUser
    from .report import write_page as write_page
    from .search.judging import LatencyGoal as LatencyGoal
    from .search.load_testing import load_test as load_test
    from .search.run_plans import SearchPlan as SearchPlan
    from .search.run_plans import confirm_plan as confirm_plan
    from .search.run_plans import limit_plan as limit_plan
    from .search.run_plans import rate_plan as rate_plan
    from .search.run_plans import users_plan as users_plan

_NAMES_OF = {
    "compare.compare_routing": "compare_routing",
    "compare.comparison_plan": "ComparisonPlan",
    "engine.arrivals": "Arrivals ConstantArrivals PoissonArrivals RampArrivals ReplayedArrivals "
    "SteppedArrivals",
    "engine.generator_process": "GeneratorProcess",
    "engine.payloads": "Payloads",
    "engine.steps": "Step StepResult",
    "engine.target": "Target",
    "engine.users": "InvocationFailed SageMakerUser",
    "report": "write_page",
    "search.judging": "LatencyGoal",
    "search.load_testing": "load_test",
    "search.run_plans": "SearchPlan confirm_plan limit_plan rate_plan users_plan",
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_OF.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [name for names in _NAMES_OF.values() for name in names.split()]
