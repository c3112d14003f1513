"""From settings to the requests and the plans of an endpoint's variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..errors.findings import Place
from ..errors.frozen import dataclass
from ..options.container import ContainerSettings
from ..options.option import taken
from ..options.rules import NO_SUCH_ENDPOINT
from ..plan.endpoint_request import EndpointRequest
from ..plan.latency_plan import make_plan
from ..plan.plan import Plan
from ..plan.serving import Serving
from ..plan.variant_shares import VariantShare, first_request, further_request, shares_of
from .endpoint import EndpointSettings
from .served import has_own_model, hub_serving_of, served_containers
from .stack import Settings
from .variants import Further, further_variants

#: A plan follows from its request alone, so whoever asks again gets the same one.
_plan_of = lru_cache(maxsize=256)(make_plan)


@dataclass(frozen=True)
class PlannedVariant:
    """One variant of one endpoint of a settings file, with its plan."""

    key: str  # the endpoint's
    variant: str
    plan: Plan
    further: Further | None  # what the file says of it; None of the first variant

    @property
    def label(self) -> str:
        """What tables call it: the first variant as the endpoint."""
        return self.key if self.further is None else f"{self.key}/{self.variant}"

    @property
    def shadow(self) -> bool:
        """Whether it gets copies."""
        return self.further is not None and self.further.shadow

    @property
    def place(self) -> Place:
        """Where the file states it."""
        return ("endpoints", self.key, *(self.further.place if self.further else ()))


def planned_variants(settings: Settings, key: str | None = None) -> Iterator[PlannedVariant]:
    """All variants of a file or endpoint with their plans, the first one's first."""
    for name in settings.endpoints if key is None else [key]:
        endpoint = _endpoint(settings, name)
        yield PlannedVariant(name, endpoint.variant_name, plan_endpoint(settings, name), None)
        for each in further_variants(endpoint):
            yield PlannedVariant(name, each.name, plan_further_variant(settings, name, each), each)


def _endpoint(settings: Settings, key: str) -> EndpointSettings:
    endpoint = settings.endpoints.get(key)
    if endpoint is None:
        raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(settings.endpoints))
    return endpoint


def _whole_request(settings: Settings, endpoint: EndpointSettings) -> EndpointRequest:
    """What the endpoint as a whole asks for, were its first variant alone."""
    return taken(
        EndpointRequest,
        endpoint,
        client_zones=settings.client_zones.zones,
        serving=Serving(
            instance_type=endpoint.instance_type,
            instance_pools=endpoint.instance_pools,
            images=list(images_of(served_containers(endpoint)).values()),
            hub=hub_serving_of(endpoint),
            inference_ami=endpoint.inference_ami.version if endpoint.inference_ami else None,
        ),
        warm_up_requests=endpoint.warm_up.requests if endpoint.warm_up else None,
        metrics_server=endpoint.alarms.tokens.server,
    )


def _shares(endpoint: EndpointSettings) -> dict[str, VariantShare]:
    return shares_of(
        [
            (endpoint.variant_name, endpoint.variant_weight),
            *((each.name, each.weight) for each in further_variants(endpoint)),
        ],
        endpoint.throughput,
        shadow=endpoint.shadow.name if endpoint.shadow else None,
    )


def plan_endpoint(settings: Settings, key: str) -> Plan:
    """The plan of an endpoint's first variant, made once however often it is asked for."""
    endpoint = _endpoint(settings, key)
    share = _shares(endpoint).get(endpoint.variant_name)
    return _plan_of(first_request(_whole_request(settings, endpoint), share))


def plan_further_variant(settings: Settings, key: str, further: Further) -> Plan:
    """The plan of a variant beside the first."""
    endpoint = _endpoint(settings, key)
    stated = further.settings
    request = further_request(
        _whole_request(settings, endpoint),
        stated,
        _shares(endpoint)[further.name],
        instance_type=stated.instance_type,
        images=list(images_of(served_containers(endpoint, stated)).values())
        if has_own_model(stated)
        else None,
        hub=hub_serving_of(endpoint, stated),
    )
    return _plan_of(request)


def warms(settings: Settings, key: str) -> bool:
    """Whether an endpoint is warmed up: it is asked for, and some variant takes requests."""
    return settings.endpoints[key].warm_up is not None and any(
        each.plan.warm_up_requests for each in planned_variants(settings, key)
    )


def images_of(containers: Sequence[ContainerSettings]) -> dict[int, str]:
    """The images of a model's containers by their index, without those yet to be built."""
    return {
        index: image
        for index, container in enumerate(containers)
        if (image := container.image.reference)
    }
