"""AWS's published comparison of routing strategies, size by size, on a fleet of one's own.

Four callers for each of 1, 5, 10, 15 and 20 instances on either side; AWS saw "15-16% improvement in
the throughput per minute per instance" and "4-33% improvement" in P99 from 5 to 20 instances.
Which needs as many instances: this module changes the desired counts of both variants from size to
size, and sets them back, however it ends.

Source: https://aws.amazon.com/blogs/machine-learning/
minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/

Permissions beside the comparison's: ``sagemaker:UpdateEndpointWeightsAndCapacities``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from ... import __version__
from ...account.calls import Account
from ...account.scaling import scalable_targets
from ...account.sessions import in_words, open_clients
from ...errors import rule
from ...plan.capacity import counted_instances
from ...report.json_text import json_text
from ...report.tables import Table
from .compare_routing import ComparisonPlan, Watch
from .comparison import Difference
from .report import SCHEMA, RoutingComparison
from .sides import Side, Sides, read_sides

CAPACITY = rule(
    "LLT122",
    "the comparison cannot change the instance counts",
    fix="Change them by hand, and compare each size with --users, four for each instance.",
    source="/sagemaker/latest/APIReference/API_UpdateEndpointWeightsAndCapacities.html",
)

SIZES = (1, 5, 10, 15, 20)
USERS_EACH = 4
PUBLISHED_THROUGHPUT_GAIN = (0.15, 0.16)
PUBLISHED_P99_CUT = (0.04, 0.33)

_START_MINUTES = 10.0  # a guess: from the order of an instance to its first answer
_WAIT_SECONDS = 3600.0


def cost_of(plan: ComparisonPlan, sizes: Sequence[int], hourly_price: float | None = None) -> str:
    """What the walk through the sizes takes, in words; the price is of one instance, in USD.

    Examples
    --------
    >>> print(cost_of(ComparisonPlan(users=4), (1, 5)))
    About 42 minutes and 4.2 instance-hours, of which starting instances takes 10 minutes a size
    """
    each = plan.seconds / 60 + _START_MINUTES
    hours = 2 * sum(sizes) * each / 60
    text = f"About {len(sizes) * each:.0f} minutes and {hours:.1f} instance-hours"
    if hourly_price is not None:
        text += f", {hourly_price * hours:,.2f} USD"
    return f"{text}, of which starting instances takes {_START_MINUTES:g} minutes a size"


@dataclass(frozen=True)
class PublishedComparison:
    """The table.

    Attributes
    ----------
    rows : tuple of (int, RoutingComparison)
        By instances of each side.
    set_back : bool
        Whether the instance counts are again what they were.
    """

    rows: tuple[tuple[int, RoutingComparison], ...]
    set_back: bool = True

    @property
    def valid(self) -> bool:
        """Whether every size has an answer, and there is more than one instance to route to."""
        return bool(self._routed) and all(report.valid for _, report in self.rows)

    @property
    def _routed(self) -> list[tuple[int, RoutingComparison]]:
        return [
            (size, report)
            for size, report in self.rows
            if size > 1 and {"p99", "throughput"} <= report.changes.keys()
        ]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of all sizes, each once."""
        sizes: dict[str, list[int]] = {}
        for size, report in self.rows:
            for text in (*report.problems, *report.warnings):
                # On one instance there is nothing to route: the published table has it so.
                if size > 1 or "nothing to route" not in text:
                    sizes.setdefault(text, []).append(size)
        return tuple(
            f"At {', '.join(map(str, at))} instance{'s' if at != [1] else ''}: {text}"
            for text, at in sizes.items()
        )

    @property
    def sentence(self) -> str:
        """The answer."""
        if not self._routed:
            return "No answer: no size was measured that has instances to choose from"
        first, last = self._routed[0][0], self._routed[-1][0]
        at = f"From {first} to {last} instances" if last > first else f"On {first} instances"
        label = self._routed[0][1].sides.labels[1]
        throughput = [report.changes["throughput"].change for _, report in self._routed]
        p99 = [-report.changes["p99"].change for _, report in self._routed]
        return (
            f"{at} {label} gives {_span(throughput)} more throughput "
            f"(published: {_span(PUBLISHED_THROUGHPUT_GAIN)}) and a p99 {_span(p99)} shorter "
            f"(published: {_span(PUBLISHED_P99_CUT)})."
        )

    def table(self) -> Table:
        """Both gains by size."""
        heads = ["Instances", "Users", "Throughput", "Interval", "p99", "Interval"]
        return Table(
            heads,
            [
                [
                    str(size),
                    str(report.plan["users"]),
                    *_cells(report.changes.get("throughput")),
                    *_cells(report.changes.get("p99")),
                ]
                for size, report in self.rows
            ],
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "preset": "published",
            "answer": self.sentence,
            "valid": self.valid,
            "warnings": list(self.warnings),
            "instance_counts_set_back": self.set_back,
            "published": {
                "throughput_gain": list(PUBLISHED_THROUGHPUT_GAIN),
                "p99_cut": list(PUBLISHED_P99_CUT),
            },
            "sizes": [{"instances": size, **report.to_dict()} for size, report in self.rows],
        }

    def to_json(self) -> str:
        """The file's text."""
        return json_text(self.to_dict())


class Capacities:
    """The desired instance counts of both sides.

    Parameters
    ----------
    sides : Sides
        As they are now, which is what :meth:`set_back` returns to.
    say : callable
        Is told what is changed.
    poll_seconds : float
        Between two looks whether the instances serve.

    Raises
    ------
    ConfigurationError
        ``LLT122`` when the counts are not known, or scaling would change them back.
    """

    def __init__(
        self, sides: Sides, account: Account, say: Callable[[str], None], poll_seconds: float
    ) -> None:
        self._sides, self._say = sides, say
        self._account, self._sagemaker = account, account.client("sagemaker")
        self._poll_seconds = poll_seconds
        self._changed = False
        for side in sides:
            if side.fleet.instances is None:
                raise CAPACITY.error(
                    got=f"{side.name}: unknown instance count",
                    allowed="permission to describe the endpoint",
                )
            if self._scaled(side):
                raise CAPACITY.error(
                    got=f"scaling of {side.name}, {side.fleet.minimum} to {side.fleet.maximum} "
                    "instances",
                    allowed="variants without scaling, or with dynamic scaling suspended",
                    fix="Suspend it meanwhile: aws application-autoscaling "
                    "register-scalable-target ... --suspended-state "
                    "DynamicScalingInSuspended=true,DynamicScalingOutSuspended=true",
                )

    def _scaled(self, side: Side) -> bool:
        if side.fleet.maximum is None:
            return False
        found = (
            self._account.known("scaling", scalable_targets, side.endpoint, [side.fleet.variant])
            or {}
        )
        states = [each.get("SuspendedState", {}) for each in found.values()]
        return not all(
            state.get("DynamicScalingInSuspended") and state.get("DynamicScalingOutSuspended")
            for state in states
        )

    def set_to(self, instances: int) -> None:
        """Give both sides so many instances, and wait until they serve.

        Raises
        ------
        ConfigurationError
            ``LLT122`` with AWS's reason.
        """
        self._changed = True
        self._set([instances, instances])

    def set_back(self) -> bool:
        """Return to what was; says how to do it by hand where that fails."""
        if not self._changed:
            return True
        counts = [side.fleet.instances or 1 for side in self._sides]
        try:
            self._wait()  # a change under way allows no other
            self._set(counts)
        except Exception as problem:
            self._say(
                f"The instance counts could not be set back: {problem}\nDo it by hand:\n"
                + "\n".join(_by_hand(self._sides, counts))
            )
            return False
        return True

    def _set(self, counts: Sequence[int]) -> None:
        self._say(
            "Setting the desired instance counts: "
            + ", ".join(
                f"{side.name} {count}" for side, count in zip(self._sides, counts, strict=True)
            )
        )
        for endpoint, desired in _by_endpoint(self._sides, counts).items():
            try:
                self._sagemaker.update_endpoint_weights_and_capacities(
                    EndpointName=endpoint, DesiredWeightsAndCapacities=desired
                )
            except (ClientError, BotoCoreError) as error:
                raise CAPACITY.error(
                    got=in_words(error), where=endpoint, allowed="an update that SageMaker takes"
                ) from error
        self._wait()

    def _wait(self) -> None:
        """Until nothing is under way and the instances serve."""
        looks = {
            "Delay": self._poll_seconds,
            "MaxAttempts": math.ceil(_WAIT_SECONDS / self._poll_seconds),
        }
        for endpoint in _by_endpoint(self._sides, [0, 0]):
            try:
                self._sagemaker.get_waiter("endpoint_in_service").wait(
                    EndpointName=endpoint, WaiterConfig=looks
                )
            except WaiterError as error:
                raise CAPACITY.error(
                    got=error.last_response.get("FailureReason") or str(error),
                    allowed="instances that come into service",
                    where=endpoint,
                ) from error


def compare_published(
    endpoints: Sequence[str],
    plan: ComparisonPlan,
    compare: Callable[[ComparisonPlan], RoutingComparison],
    *,
    variants: Sequence[str] = (),
    sizes: Iterable[int] = SIZES,
    profile: str | None = None,
    region: str | None = None,
    watch: Watch | None = None,
    poll_seconds: float = 10.0,
) -> PublishedComparison:
    """Walk through the sizes: change both sides' instance counts, compare, set them back.

    Parameters
    ----------
    endpoints, variants : sequence of str
        As for :func:`.compare_routing.compare_routing`.
    plan : ComparisonPlan
        Of each size; its users are replaced by four for each instance.
    compare : callable
        Compares with a plan.
    sizes : iterable of int
        Instances of each side. By default the published ones.
    profile, region : str, optional
        As for the AWS CLI.
    watch : Watch, optional
        Is told what happens.

    Raises
    ------
    ConfigurationError
        ``LLT122``, and the comparison's.
    """
    watch = watch or Watch()
    client, found_region = open_clients(profile, region)
    account = Account(client, found_region, once=False)
    sides = read_sides(account, endpoints, variants)
    capacities = Capacities(sides, account, watch.say, poll_seconds)
    rows: list[tuple[int, RoutingComparison]] = []
    set_back = False
    try:
        for size in sizes:
            capacities.set_to(size)
            rows.append((size, compare(replace(plan, users=USERS_EACH * size, rate=None))))
            if rows[-1][1].interrupted:
                break
    except KeyboardInterrupt:
        watch.say("Interrupted; setting the instance counts back")
    finally:
        set_back = capacities.set_back()
    return PublishedComparison(tuple(rows), set_back)


def _by_endpoint(sides: Sides, counts: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """One update for each endpoint: a second one would be refused while the first is under way."""
    found: dict[str, list[dict[str, Any]]] = {}
    for side, count in zip(sides, counts, strict=True):
        found.setdefault(side.endpoint, []).append(
            {"VariantName": side.fleet.variant, "DesiredInstanceCount": count}
        )
    return found


def _by_hand(sides: Sides, counts: Sequence[int]) -> Iterator[str]:
    for endpoint, desired in _by_endpoint(sides, counts).items():
        variants = " ".join(
            ",".join(f"{key}={value}" for key, value in each.items()) for each in desired
        )
        yield (
            f"aws sagemaker update-endpoint-weights-and-capacities --endpoint-name {endpoint} "
            f"--desired-weights-and-capacities {variants}"
        )


def instructions(sides: Sides, sizes: Sequence[int]) -> Iterator[str]:
    """How to do it: with the option, or by hand."""
    yield (
        "Nothing was changed. With --change-instances this command walks the sizes itself and sets "
        "the counts back; or by hand, for each size:"
    )
    both = " ".join(dict.fromkeys(side.endpoint for side in sides))
    variants = " ".join(f"--variant {side.fleet.variant}" for side in sides)
    for size in sizes:
        yield f"# {counted_instances(size)}"
        yield from _by_hand(sides, [size, size])
        yield f"low-latency compare-routing {both} {variants} --users {USERS_EACH * size}"


def _cells(change: Difference | None) -> list[str]:
    if change is None:
        return ["-", "-"]
    return [
        f"{100 * change.change:+.1f} %",
        f"{100 * change.low:+.1f} to {100 * change.high:+.1f} %",
    ]


def _span(values: Sequence[float]) -> str:
    low, high = f"{100 * min(values):.0f}", f"{100 * max(values):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"
