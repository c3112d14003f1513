"""One settings file in two revisions: what becomes of it, of its p99 and of its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError, LowLatencyEndpointError, SettingsError
from ..plan.hourly_cost import StackCost
from ..settings import explain_variants, load_settings, plan_endpoint, stack_cost
from ..settings.fields import is_within
from ..settings.rules import OUTSIDE
from ..settings.update.comparison import Comparison, compare
from ..settings.update.effects import Difference, Effect

if TYPE_CHECKING:
    from ..settings import Settings
    from ..simulate.estimates import Estimate
    from ..simulate.load_test_result import LoadTestResult

NOT_MEASURED = "not simulated: nobody measured how long a call takes (--from-load-test FILE)"

_SEED = 1
_REPLICATIONS = 4
_REQUESTS = 100_000  # of each replication: a second or two without numba


@dataclass(frozen=True)
class Latency:
    """p99 of an endpoint's model at its peak, before and after.

    Attributes
    ----------
    before, after : Estimate or str
        In seconds; or why it is not known, empty where there is no endpoint.
    """

    before: Estimate | str
    after: Estimate | str

    def to_dict(self) -> dict[str, Any]:
        """As JSON-safe data, in milliseconds."""
        return {"before": _data(self.before), "after": _data(self.after)}


@dataclass(frozen=True)
class FileReview:
    """A settings file in two revisions.

    Attributes
    ----------
    path : str
        From the repository's folder.
    before, after : Settings or None
        ``None`` where there is no such file, or one with mistakes.
    problems : tuple of str
        The mistakes of the pull request's.
    is_new, is_deleted : bool
    before_is_wrong : bool
        Whether the former file has mistakes, so that there is nothing to compare with.
    load_test : LoadTestResult or None
        What the simulation knows of a call.
    folders : tuple of pathlib.Path
        Of both revisions.
    """

    path: str
    before: Settings | None
    after: Settings | None
    problems: tuple[str, ...] = ()
    is_new: bool = False
    is_deleted: bool = False
    before_is_wrong: bool = False
    load_test: LoadTestResult | None = field(default=None, repr=False)
    folders: tuple[Path, ...] = ()

    @cached_property
    def comparison(self) -> Comparison | None:
        """What deploying the one over the other does; ``None`` where one of them is missing."""
        if self.before is None or self.after is None:
            return None
        found = compare(self.before, self.after)
        return replace(found, differences=tuple(map(self._within, found.differences)))

    def _within(self, difference: Difference) -> Difference:
        """The difference with paths from the repository's folder, wherever the revisions lie."""

        def plain(text: str) -> str:
            for folder in self.folders:
                text = text.replace(f"{folder}/", "")
            return text

        before, after = plain(difference.before), plain(difference.after)
        if before == after != difference.after:
            after = f"{after} (other content)"
        consequences = tuple(
            each._replace(text=plain(each.text)) for each in difference.consequences
        )
        return replace(difference, before=before, after=after, consequences=consequences)

    @property
    def effect(self) -> Effect:
        """The greatest of all differences."""
        if self.comparison is not None:
            return self.comparison.effect
        if self.is_deleted:
            return Effect.DELETED
        return Effect.NEW if self.is_new and self.after else Effect.NOT_KNOWN

    @property
    def gained_warnings(self) -> list[tuple[str, str]]:
        """Endpoint and text of the warnings that were not there before."""
        if self.comparison is not None:
            return self.comparison.warnings["gained"]
        if self.after is None:
            return []
        plans = explain_variants(self.after).items()
        return [(key, str(each)) for key, plan in plans for each in plan.warnings]

    @cached_property
    def costs(self) -> tuple[StackCost, StackCost]:
        """What both cost for an hour; nothing where there is none."""
        before, after = (
            stack_cost(each) if each else StackCost(endpoints={})
            for each in (self.before, self.after)
        )
        return before, after

    @cached_property
    def latencies(self) -> dict[str, Latency]:
        """p99 before and after, by the endpoint's key, simulated with the same chance."""
        keys = [key for each in (self.before, self.after) if each for key in each.endpoints]
        return {
            key: Latency(
                _p99(self.before, key, self.load_test), _p99(self.after, key, self.load_test)
            )
            for key in dict.fromkeys(keys)
        }

    def to_dict(self) -> dict[str, Any]:
        """The review as JSON-safe data."""
        state = "new" if self.is_new else "deleted" if self.is_deleted else "in both"
        before, after = self.costs
        found = (
            self.comparison.to_dict()
            if self.comparison
            else {
                "effect": self.effect.word,
                "cost": {"before": before.to_dict(), "after": after.to_dict()},
            }
        )
        return {
            "settings": self.path,
            "file": state,
            "problems": list(self.problems),
            "before_has_mistakes": self.before_is_wrong,
            **found,
            "p99_ms": {key: each.to_dict() for key, each in self.latencies.items()},
        }


def settings_files(patterns: list[str], before: Path, after: Path) -> Iterator[str]:
    """The settings files of two folders: names as they are, patterns with what matches in either.

    Raises
    ------
    ConfigurationError
        ``LLE983`` for what is outside of both.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise OUTSIDE.error(got=pattern, allowed="a path within the repository")
        if any(each in pattern for each in "*?["):
            for folder in (after, before):
                paths = sorted(folder.glob(pattern))
                found |= {str(each.relative_to(folder)): None for each in paths}
        else:
            found[str(Path(pattern))] = None
    yield from found


def review_file(
    path: str, before: Path, after: Path, load_test: LoadTestResult | None = None
) -> FileReview:
    """Read a settings file in two revisions, each with the files of its own revision.

    Parameters
    ----------
    path : str
        From the repository's folder.
    before, after : pathlib.Path
        The folders of the revisions, without symbolic links.
    load_test : LoadTestResult or None
        Without it no p99 is simulated.

    Raises
    ------
    ConfigurationError
        ``LLE983`` for a settings file that leads out of its repository.
    """
    old, new = before / path, after / path
    for file, folder in ((old, before), (new, after)):
        if not is_within(file, folder):
            raise OUTSIDE.error(got=path, allowed="a path within the repository")
    was, is_there = old.is_file(), new.is_file()
    former = settings = None
    problems: tuple[str, ...] = ()
    if was:
        try:
            former = load_settings(old, within=before)
        except LowLatencyEndpointError:
            former = None
    if is_there:
        try:
            settings = load_settings(new, within=after)
        except SettingsError as error:
            problems = tuple(each.replace(f"{new}", path) for each in error.parts[1:])
        except LowLatencyEndpointError as error:
            problems = (str(error),)
    elif not was:
        problems = ("there is no such file, neither before nor after",)
    return FileReview(
        path,
        former,
        settings,
        tuple(each.replace(f"{after}/", "") for each in problems),
        is_new=is_there and not was,
        is_deleted=was and not is_there,
        before_is_wrong=was and former is None,
        load_test=load_test,
        folders=(before, after),
    )


def _p99(settings: Settings | None, key: str, load_test: LoadTestResult | None) -> Estimate | str:
    """p99 of the model at the peak, in seconds; or why nobody knows it."""
    from ..plan.load_test_validity import other_instance_type
    from ..settings.simulated_deployment import simulated_deployment
    from ..simulate import simulate
    from ..simulate.assumptions import model_of_plan

    if settings is None or key not in settings.endpoints:
        return ""
    stated = settings.endpoints[key]
    if load_test is None:
        return NOT_MEASURED
    if stated.variants:
        return "not simulated: the endpoint has several variants"
    if len(settings.endpoints) > 1 and load_test.endpoint not in (key, stated.endpoint_name):
        return f"not simulated: the load test called {load_test.endpoint or 'no named endpoint'}"
    if other := other_instance_type(load_test.instance_type, stated.instance_type):
        return f"not simulated: {other}"
    try:
        model = model_of_plan(
            plan_endpoint(settings, key),
            throughput=stated.throughput.measured if stated.throughput else None,
            load_test=load_test,
            deployment=simulated_deployment(stated),
        )
        result = simulate(
            model.steady(), requests=_REQUESTS, replications=_REPLICATIONS, seed=_SEED
        )
    except ConfigurationError as error:
        return f"not simulated: {error.what} ({error.code})"
    return result.percentile(99.0)


def _data(found: Estimate | str) -> dict[str, Any] | str | None:
    if isinstance(found, str):
        return found or None
    return {
        "mean": 1000 * found.mean,
        "half_width": 1000 * found.half_width if found.tells else None,
    }
