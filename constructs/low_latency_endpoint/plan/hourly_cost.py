"""What an endpoint costs in an hour, a load test as a whole, and a million requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors.frozen import dataclass
from ..errors.impossible import falling, out_of_range, refuse
from ..facts.prices import HOSTING_PRICES, HOURS_PER_MONTH, OTEL_METRICS_USD, Price
from ..report.numbers import readable
from .billed_items import BilledItem, price_data, rounded
from .decisions import IMPOSSIBLE, Decision
from .plan import ServedPeak
from .request_size import RequestSize
from .scaling_pace import FleetAlong

MOMENTS = {
    "at_least": "the fewest instances that scaling leaves; all of them where nothing scales",
    "at_first": "the instances that the first deployment starts",
    "at_most": "the most instances that scaling reaches; all of them where nothing scales",
    "in_an_update": "the most instances while a new version takes over: two fleets with "
    "blue/green, the fleet and a batch when rolling",
}
"""The four numbers of instances that a cost is given for, and what each is."""

POOL_COUNTED = {
    "at_least": "the cheapest pool",
    "at_first": "the pool tried first",
    "at_most": "the dearest pool",
    "in_an_update": "the dearest pool",
}
"""The instance pool whose price counts at each of the moments: any pool may serve alone."""

NOT_IN_IT = (
    "Not in it: disks, SageMaker's data in and out, answers (and requests whose size neither "
    "payload_bytes nor warm_up.payload says) through the interface endpoint, which AWS bills in both "
    "directions, flow "
    "logs, the container's logs, OpenTelemetry metrics and PromQL queries, service level objectives "
    "(Application Signals), S3, keys, what runs only while "
    "something is deployed; free tiers, taxes and discounts. Most of it is cents beside the instances; "
    "data and logs grow with traffic, metrics with the instances. OpenTelemetry metrics are on unless "
    f"metrics.detailed_observability is false: {OTEL_METRICS_USD:.2f} USD for a GB, and for a GB that the "
    "account's OTel enrichment adds; how many GB depends on the container."
)
"""What is left out, for people."""

UNIT = "USD per hour"
MILLION = 1_000_000
_BYTES_PER_GB = 1_000_000_000


@dataclass(frozen=True)
class PricedType:
    """An instance type that may serve."""

    instance_type: str
    price: Price | None  # of one instance for an hour; None where nobody stated it


@dataclass(frozen=True, kw_only=True)
class EndpointCost:
    """Instances of one endpoint and what belongs to it, and what they cost."""

    instance_type: str  # that the numbers of instances are planned for
    at_least: int  # instances, at each of the MOMENTS
    at_first: int
    at_most: int
    in_an_update: int
    price: Price | None  # of one instance for an hour; None where nobody stated it
    others: tuple[BilledItem, ...] = ()  # its alarms and functions
    peak_tps: float | None = None  # requests per second at the usual peak
    at_peak: int | None = None  # instances that serve it
    other_peaks: tuple[ServedPeak, ...] = ()  # of the day
    # a request through the interface endpoint, where its size is known; per_hour is GB in one
    request_gb: BilledItem | None = None
    data_price: Price | None = None  # of a GB through the interface endpoint
    copies_of: str = ""  # whose requests a shadow gets, by the key among all endpoints
    pools: tuple[PricedType, ...] = ()  # where several types may serve, the one tried first first
    on_average: float | None = None  # instances along a day of usual traffic, where one was counted

    def __post_init__(self) -> None:
        instances = {moment: getattr(self, moment) for moment in MOMENTS}
        at_peak = {
            "at_peak": self.at_peak,
            "peak_tps": self.peak_tps,
            "on_average": self.on_average,
        }
        refuse(IMPOSSIBLE, "cost", out_of_range({**instances, **at_peak}))
        refuse(IMPOSSIBLE, "cost", falling(instances))

    @property
    def peaks(self) -> tuple[ServedPeak, ...]:
        """All peaks of the day, the usual one first; none where they are not known."""
        if self.peak_tps is None or self.at_peak is None:
            return ()
        return ServedPeak("", self.peak_tps, self.at_peak), *self.other_peaks

    @property
    def highest_tps(self) -> float | None:
        """Requests per second at the highest peak of the day; None where they are not known."""
        if self.peak_tps is None:
            return None
        return max([self.peak_tps, *(peak.tps for peak in self.other_peaks)])

    def serving(self, label: str) -> int:
        """Instances that serve one of the peaks; 0 where that is not known."""
        others = {peak.label: peak.instances for peak in self.other_peaks}
        return others.get(label, self.at_peak or 0)

    def instances(self, moment: str) -> int:
        """How many there are at one of the moments."""
        return int(getattr(self, moment))

    @property
    def types(self) -> tuple[PricedType, ...]:
        """The instance types that may serve, in the order in which they are tried."""
        return self.pools or (PricedType(self.instance_type, self.price),)

    @property
    def type_names(self) -> str:
        """The same in words."""
        return " or ".join(kind.instance_type for kind in self.types)

    @property
    def without_price(self) -> tuple[str, ...]:
        """Those of them that nobody stated the price of."""
        return tuple(kind.instance_type for kind in self.types if kind.price is None)

    def counted_as(self, moment: str) -> PricedType | None:
        """The type that all instances count as at a moment; ``None`` where a missing price decides."""
        first = self.types[0]
        if moment == "at_first" or not self.pools:
            return first
        if self.without_price:
            return None
        cheapest_or_dearest = min if moment == "at_least" else max
        return cheapest_or_dearest(self.types, key=_hourly_price)

    def pool_text(self, moment: str) -> str:
        """The pool that counts at a moment, in words; empty without pools or where it is not known."""
        kind = self.counted_as(moment)
        if kind is None or not self.pools:
            return ""
        return f"{kind.instance_type}, {POOL_COUNTED[moment]}"

    @property
    def dearer_pool(self) -> str:
        """What may cost more than the pool tried first, in words; empty where nothing may."""
        first = self.types[0]
        missing = [name for name in self.without_price if name != first.instance_type]
        if missing:
            return f"{' and '.join(missing)} may be dearer, at a price that is not known"
        dearest = self.counted_as("at_most")
        if dearest is None or _hourly_price(dearest) <= _hourly_price(first):
            return ""
        return (
            f"an {self.pool_text('at_most')}, costs {readable(_hourly_price(dearest))} an hour, not "
            f"{readable(_hourly_price(first))}"
        )

    def usd(self, moment: str) -> float | None:
        """US dollars per hour for the instances; ``None`` without a price."""
        return _usd(self.instances(moment), self.counted_as(moment))

    def usd_of(self, instances: float) -> float | None:
        """The same for a number of instances, of the type that is tried first."""
        return _usd(instances, self.types[0])

    def data_usd(self, requests: float) -> float:
        """US dollars for the requests' way through the interface endpoint, as far as known."""
        sent = self.request_gb
        return requests * sent.per_hour * sent.price.usd if sent and sent.price else 0.0

    @property
    def data_per_hour(self) -> BilledItem | None:
        """What requests bring through the interface endpoint in an hour at the highest peak, if known."""
        sent = self.request_gb
        if sent is None or self.highest_tps is None:
            return None
        return replace(sent, per_hour=sent.per_hour * self.highest_tps * 3600)

    def decisions(self) -> Iterator[Decision[Any]]:
        """The costs as decisions of the plan; without a price one that says what is missing."""
        if self.without_price:
            stated = " ".join(f"--price {name}=USD" for name in self.without_price)
            yield Decision(
                name="hourly_cost",
                value=None,
                unit=UNIT,
                rule="instances x the price of one for an hour, which nobody has stated",
                inputs={
                    f"instances {moment.replace('_', ' ')}": self.instances(moment)
                    for moment in MOMENTS
                },
                source=HOSTING_PRICES,
                note="low-latency prices reads it from AWS's Price List; or state it under "
                f"prices, or with {stated}",
            )
        for moment, what in MOMENTS.items():
            kind = self.counted_as(moment)
            if kind is None or kind.price is None:
                continue
            pool = self.pool_text(moment)
            yield Decision(
                name=f"hourly_cost_{moment}",
                value=self.usd(moment),
                unit=UNIT,
                rule=f"{what}, x the price of one for an hour",
                inputs={
                    "instances": self.instances(moment),
                    **({"each is an": pool} if pool else {}),
                    "price of one": kind.price.usd,
                    "price is": kind.price.origin,
                },
                source=HOSTING_PRICES,
                note="the interface endpoints, which all endpoints share, come to it"
                if moment == "at_least"
                else "",
            )

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-safe data."""
        return {
            "instance_type": self.instance_type,
            "price": price_data(self.price),
            "pools": [
                {"instance_type": pool.instance_type, "price": price_data(pool.price)}
                for pool in self.pools
            ],
            **{moment: self._at(moment) for moment in MOMENTS},
            "others": [each.to_dict() for each in self.others],
            "data_at_peak": self.data_per_hour.to_dict() if self.data_per_hour else None,
        }

    def _at(self, moment: str) -> dict[str, Any]:
        """The cost at a moment as JSON-safe data."""
        kind = self.counted_as(moment)
        return {
            "instances": self.instances(moment),
            "instance_type": kind.instance_type if kind else None,
            "usd": self.usd(moment),
        }


def _hourly_price(kind: PricedType) -> float:
    """US dollars for one instance of the type for an hour; 0 where nobody stated it."""
    return kind.price.usd if kind.price else 0.0


def _usd(instances: float, kind: PricedType | None) -> float | None:
    """US dollars per hour for so many instances of a type; ``None`` without its price."""
    if kind is None or kind.price is None:
        return None
    return rounded(instances * kind.price.usd)


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """What all endpoints of a stack, and what they share, cost."""

    endpoints: Mapping[str, EndpointCost]  # by the endpoint's key
    shared: tuple[BilledItem, ...] = ()  # interface endpoints

    def beside(self, other: StackCost, name: str) -> StackCost:
        """What this stack and another one cost together; the other's endpoints bear its name."""
        theirs = {
            f"{key} of {name}": replace(
                endpoint, copies_of=endpoint.copies_of and f"{endpoint.copies_of} of {name}"
            )
            for key, endpoint in other.endpoints.items()
        }
        return StackCost(
            endpoints={**self.endpoints, **theirs}, shared=(*self.shared, *other.shared)
        )

    @property
    def items(self) -> tuple[BilledItem, ...]:
        """Everything beside the instances that is billed for every hour."""
        return (
            *self.shared,
            *(item for endpoint in self.endpoints.values() for item in endpoint.others),
        )

    @property
    def without_price(self) -> tuple[str, ...]:
        """The instance types that nobody stated the price of, each once: without them no sum."""
        missing = (name for endpoint in self.endpoints.values() for name in endpoint.without_price)
        return tuple(dict.fromkeys(missing))

    @property
    def by_kind(self) -> dict[tuple[str, str], BilledItem]:
        """The same of all endpoints together: each kind once, by its price and its words."""
        kinds: dict[tuple[str, str], BilledItem] = {}
        for item in self.items:
            kind = (item.item, item.what)
            kinds[kind] = item.with_more(kinds.get(kind))
        return kinds

    @property
    def left_out(self) -> tuple[BilledItem, ...]:
        """What is billed beside the instances and has no price: cents that the sum lacks."""
        return tuple(item for item in self.by_kind.values() if item.price is None)

    @property
    def prices(self) -> dict[str, Price]:
        """The prices that are counted with, by item."""
        types = (kind for endpoint in self.endpoints.values() for kind in endpoint.types)
        found = {kind.instance_type: kind.price for kind in types}
        found |= {item.item: item.price for item in self.items}
        sent = (endpoint.request_gb for endpoint in self.endpoints.values())
        found |= {item.item: item.price for item in sent if item}
        return {item: price for item, price in found.items() if price}

    def usd(self, moment: str) -> float | None:
        """US dollars per hour for all of it; ``None`` when an instance's price is missing.

        What else has no price is cents, and is left out.
        """
        return self._with_items([endpoint.usd(moment) for endpoint in self.endpoints.values()])

    def usd_on_average(self, keys: Iterable[str]) -> float | None:
        """US dollars per hour of some endpoints along a day of usual traffic, and of all items.

        ``None`` where a price is missing. What is not known of a day counts as nothing.
        """
        fleets = [self.endpoints[key] for key in keys]
        return self._with_items([endpoint.usd_of(endpoint.on_average or 0) for endpoint in fleets])

    @property
    def known_along_a_day(self) -> set[str]:
        """The endpoints whose fleet along a day of usual traffic is known."""
        return {key for key, endpoint in self.endpoints.items() if endpoint.on_average is not None}

    def usd_per_month(self, moment: str) -> float | None:
        """The same for a month of 730 hours in which nothing changes."""
        hour = self.usd(moment)
        return None if hour is None else round(hour * HOURS_PER_MONTH, 2)

    def usd_for(self, key: str, instances: float) -> float | None:
        """US dollars per hour for so many instances, with its parts and its share of others."""
        each = self.endpoints[key]
        fleet = each.usd_of(instances)
        if fleet is None:
            return None
        share = sum(item.usd or 0.0 for item in self.shared) / max(self.called, 1)
        return rounded(fleet + sum(item.usd or 0.0 for item in each.others) + share)

    @property
    def called(self) -> int:
        """Endpoints that callers call, which share what the stack has once; shadows get copies."""
        return sum(not endpoint.copies_of for endpoint in self.endpoints.values())

    def shadows_of(self, key: str) -> list[EndpointCost]:
        """Those that get copies of an endpoint's requests, which cost what these cause."""
        return [endpoint for endpoint in self.endpoints.values() if endpoint.copies_of == key]

    def usd_serving(self, key: str, instances: float, tps: float, label: str = "") -> float | None:
        """US dollars per hour while so many instances answer so many requests per second.

        What :meth:`usd_for` counts, a shadow's instances at the peak of this label, and the requests' way
        through the interface endpoint. ``None`` when the price of an instance is missing.
        """
        hour = self.usd_for(key, instances)
        copies = [shadow.usd_of(shadow.serving(label)) for shadow in self.shadows_of(key)]
        if hour is None or None in copies:
            return None
        sent = self.endpoints[key].data_usd(tps * 3600)
        return hour + sum(usd or 0.0 for usd in copies) + sent

    def usd_per_million(
        self, key: str, instances: float | None = None, tps: float | None = None, label: str = ""
    ) -> float | None:
        """US dollars for a million requests to an endpoint: of what :meth:`usd_serving` counts."""
        each = self.endpoints[key]
        instances = each.at_peak if instances is None else instances
        tps = each.peak_tps if tps is None else tps
        if instances is None or not tps:
            return None
        hour = self.usd_serving(key, instances, tps, label)
        return None if hour is None else rounded(hour / (tps * 3600) * MILLION)

    def _at_other_peaks(self, key: str) -> dict[str, float | None]:
        """US dollars for a million requests at each other peak of the day."""
        return {
            peak.label: self.usd_per_million(key, peak.instances, peak.tps, peak.label)
            for peak in self.endpoints[key].other_peaks
        }

    def along(self, fleets: Mapping[str, FleetAlong | None]) -> CostAlong | None:
        """What it costs along a day that repeats; ``None`` when a price or a fleet is missing."""
        parts: list[float] = []
        for key, endpoint in self.endpoints.items():
            fleet = fleets[key]
            usd = None if fleet is None else endpoint.usd_of(fleet.mean)
            if usd is None or fleet is None:
                return None
            parts.append(usd + endpoint.data_usd((fleet.tps or 0.0) * 3600))
        hour = self._sum_with_items(parts)
        rates = [fleet.tps for fleet in fleets.values() if fleet]
        known = [rate for rate in rates if rate is not None]
        return CostAlong(hour, sum(known) * 3600 if len(known) == len(rates) else None)

    def _with_items(self, parts: list[float | None]) -> float | None:
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) else self._sum_with_items(known)

    def _sum_with_items(self, parts: list[float]) -> float:
        return rounded(sum(parts) + sum(item.usd or 0.0 for item in self.items))

    def to_dict(self) -> dict[str, Any]:
        """The costs as JSON-safe data, keys always in the same order."""
        return {
            "unit": UNIT,
            **{moment: self.usd(moment) for moment in MOMENTS},
            "month_of_730_hours": {
                moment: self.usd_per_month(moment) for moment in MOMENTS if moment != "in_an_update"
            },
            "endpoints": {
                key: {
                    **endpoint.to_dict(),
                    "usd_per_million_requests": self.usd_per_million(key),
                    "at_other_peaks": self._at_other_peaks(key),
                }
                for key, endpoint in self.endpoints.items()
            },
            "shared": [each.to_dict() for each in self.shared],
            "without_price": list(self.without_price),
            "left_out": [each.text for each in self.left_out],
            "note": NOT_IN_IT,
        }


@dataclass(frozen=True)
class CostAlong:
    """What a stack costs along a day that repeats."""

    usd_per_hour: float  # on average
    requests_per_hour: float | None  # on average; None where an endpoint's traffic is not known

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "cost along a day", out_of_range(vars(self)))

    @property
    def usd_per_month(self) -> float:
        """US dollars for 730 hours."""
        return round(self.usd_per_hour * HOURS_PER_MONTH, 2)

    @property
    def usd_per_million(self) -> float | None:
        """US dollars for a million requests."""
        requests = self.requests_per_hour
        return rounded(self.usd_per_hour / requests * MILLION) if requests else None

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-safe data."""
        requests = self.requests_per_hour
        return {
            "usd_per_hour": self.usd_per_hour,
            "usd_per_month": self.usd_per_month,
            "requests_per_month": None if requests is None else round(requests * HOURS_PER_MONTH),
            "usd_per_million_requests": self.usd_per_million,
        }


def sent_request(size: RequestSize, price: Price | None) -> BilledItem:
    """A request through the interface endpoint; a GB counts a billion bytes."""
    return BilledItem(
        what=f"a request of {size.text}",
        item="interface_endpoint_data",
        per_hour=size.size / _BYTES_PER_GB,
        price=price,
    )


def _usd_per_million(usd_per_hour: float, tps: float) -> float:
    """US dollars for a million requests of instances that answer so many a second."""
    return round(usd_per_hour / (tps * 3600) * MILLION, 4)


@dataclass(frozen=True, kw_only=True)
class LoadTestCost:
    """The endpoint's instances while a load test ran."""

    instance_type: str
    instances: int  # that served
    seconds: float  # from the first step to the last one
    price: Price | None  # of one instance for an hour
    tps_per_instance: float | None = None  # what one holds; None without a limit
    lower_bound: bool = False  # whether it holds more, and nobody looked how much

    def __post_init__(self) -> None:
        names = ("instances", "seconds", "tps_per_instance")
        numbers = {name: getattr(self, name) for name in names}
        refuse(IMPOSSIBLE, "cost of the load test", out_of_range(numbers))

    @property
    def instance_hours(self) -> float:
        """Instances times hours."""
        return self.instances * self.seconds / 3600

    @property
    def usd(self) -> float | None:
        """US dollars for the instances; ``None`` without a price."""
        return round(self.instance_hours * self.price.usd, 4) if self.price else None

    @property
    def usd_per_million(self) -> float | None:
        """US dollars for a million requests at the limit; ``None`` without a price or a limit."""
        if self.price is None or not self.tps_per_instance:
            return None
        return _usd_per_million(self.price.usd, self.tps_per_instance)

    @property
    def _hours(self) -> str:
        return readable(self.instance_hours, 2) if self.instance_hours >= 0.01 else "less than 0.01"

    def lines(self) -> Iterator[str]:
        """For people."""
        million = self.usd_per_million
        if million is not None and self.price is not None:
            most = "at most " if self.lower_bound else ""
            yield (
                f"A million requests cost {most}{million:,.2f} US dollars at the limit: "
                f"{self.instance_type} for {readable(self.price.usd)} an hour ({self.price.origin})."
            )
        elif self.tps_per_instance and self.price is None:
            yield (
                f"A million requests take {readable(_usd_per_million(1, self.tps_per_instance), 3)} instance "
                "hours at the limit."
            )
        serving = f"its {self.instances} instance{'s' * (self.instances != 1)}"
        if not self.instance_type:
            yield (
                f"The load test took {self._hours} instance hours. What they cost is not known: "
                "they are not all of one known instance type."
            )
        elif self.usd is None:
            yield (
                f"The load test took {self._hours} instance hours. The price of "
                f"{self.instance_type} is not known: state it with --price "
                f"{self.instance_type}=USD, or under prices in a settings file."
            )
        else:
            yield (
                f"While the load test ran, {serving} cost {self.usd:,.2f} US dollars "
                f"({self._hours} instance hours)."
            )

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-safe data."""
        return {
            "instance_hours": round(self.instance_hours, 4),
            "price": {"usd": self.price.usd, "origin": self.price.origin} if self.price else None,
            "usd": self.usd,
            "usd_per_million_requests": self.usd_per_million,
        }
