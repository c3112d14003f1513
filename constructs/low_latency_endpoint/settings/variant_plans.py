"""From settings to the requests and the plans of an endpoint's variants, and to its alarms on tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..errors.findings import Place
from ..errors.frozen import dataclass
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.canary import canary_bytes
from ..options.container import ContainerSettings, DeepLearningContainerSettings, ImageSettings
from ..options.option import taken
from ..options.rules import NO_SUCH_ENDPOINT
from ..plan.decisions import Decision
from ..plan.endpoint_request import EndpointRequest, VariantShare
from ..plan.hub_serving import HubServing, hub_serving
from ..plan.latency_plan import make_plan
from ..plan.pinned_model import staging_calls
from ..plan.plan import Plan
from ..plan.serving import Serving
from ..plan.token_plan import BETWEEN_TOKENS, FIRST_TOKEN, TokenThreshold, token_threshold
from ..plan.variant_shares import first_request, further_request, shares_of
from .endpoint import EndpointSettings, Further, FurtherSettings, further_variants, volume_of
from .stack import Settings


def environment_place(endpoint: EndpointSettings) -> Place:
    """Where an endpoint of one container states environment variables, below the endpoint's."""
    if endpoint.hugging_face is not None:
        return ("hugging_face", "environment")
    return ("containers", 0, "environment")


def has_own_model(further: FurtherSettings | None) -> bool:
    """Whether a variant beside the first has a model of its own."""
    return further is not None and bool(further.containers or further.hugging_face)


def hub_models(endpoint: EndpointSettings) -> list[HuggingFaceSettings]:
    """The models of the Hub that an endpoint and its further variants state."""
    further = [variant.settings.hugging_face for variant in further_variants(endpoint)]
    return [model for model in (endpoint.hugging_face, *further) if model]


def hub_serving_of(
    endpoint: EndpointSettings, further: FurtherSettings | None = None
) -> HubServing | None:
    """How the model of the Hub is served that an endpoint, or a variant beside its first, states."""
    model = endpoint.hugging_face if further is None else further.hugging_face
    if model is None:
        return None
    types, volume = _types(endpoint, further), volume_of(endpoint, further)
    staging_calls(model.hub_model.pinned, staged_before=model.bucket is not None)
    return hub_serving(model.hub_model, types, volume_gib=volume, where="hugging_face")


def served_containers(
    endpoint: EndpointSettings, further: FurtherSettings | None = None, region: str | None = None
) -> tuple[ContainerSettings, ...]:
    """The containers of the first variant's model, or of a further variant's own.

    Of a model of the Hub they are what follows from it and the instance type, without data: that
    is staged at deployment. ``region`` tells the account of images that AWS keeps elsewhere than
    the Deep Learning Containers.

    Raises
    ------
    ConfigurationError
        As :func:`hub_serving_of`.
    """
    of = endpoint if further is None else further
    serving = hub_serving_of(endpoint, further)
    if serving is None or of.hugging_face is None:
        return tuple(of.containers)
    container, account = serving.container, None
    if container.registry != "dlc" and region is not None:
        account = container.account(region, "hugging_face")
    image = DeepLearningContainerSettings(
        repository=container.repository, tag=container.tag, account=account
    )
    environment = {**container.environment, **of.hugging_face.environment}
    return (ContainerSettings(image=ImageSettings(dlc=image), environment=environment),)


def _types(endpoint: EndpointSettings, further: FurtherSettings | None) -> list[str]:
    if further is not None and further.instance_type is not None:
        return [further.instance_type]
    pools = [pool.instance_type for pool in endpoint.instance_pools]
    return list(dict.fromkeys([endpoint.instance_type, *pools]))


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
        for variant in further_variants(endpoint):
            yield PlannedVariant(
                name, variant.name, plan_further_variant(settings, name, variant), variant
            )


def _endpoint(settings: Settings, key: str) -> EndpointSettings:
    endpoint = settings.endpoints.get(key)
    if endpoint is None:
        raise NO_SUCH_ENDPOINT.error(got=key, allowed=", ".join(settings.endpoints))
    return endpoint


def _whole_request(settings: Settings, endpoint: EndpointSettings) -> EndpointRequest:
    """What the endpoint as a whole asks for, were its first variant alone."""
    request = taken(
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
        warm_up_bytes=endpoint.warm_up.largest_bytes if endpoint.warm_up else None,
        canary_bytes=canary_bytes(endpoint.canary, endpoint.warm_up),
        alarm_window=endpoint.alarms.window,
        error_limit=endpoint.alarms.error_limit,
        slow_limit=endpoint.alarms.slow_limit,
        period_objective=endpoint.alarms.period_objective,
        least_first_tokens=endpoint.alarms.tokens.minimum_requests,
        deployment=endpoint.deployment,
    )
    known = settings.private_link.known_private_dns
    # None says that nobody knows it, and `taken` leaves None out.
    return request if known else replace(request, private_dns=known)


def _shares(endpoint: EndpointSettings) -> dict[str, VariantShare]:
    return shares_of(
        [
            (endpoint.variant_name, endpoint.variant_weight),
            *((variant.name, variant.weight) for variant in further_variants(endpoint)),
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


def warm_up_requests(settings: Settings, key: str) -> int:
    """Requests that a deployment's warm-up sends to an endpoint, at least; 0 where none is asked for."""
    if settings.endpoints[key].warm_up is None:
        return 0
    return max(variant.plan.warm_up_requests for variant in planned_variants(settings, key))


def images_of(containers: Sequence[ContainerSettings]) -> dict[int, str]:
    """The images of a model's containers by their index, without those yet to be built."""
    return {
        index: image
        for index, container in enumerate(containers)
        if (image := container.image.reference)
    }


_STATED = {FIRST_TOKEN: "ttft", BETWEEN_TOKENS: "itl"}


def token_limits(endpoint: EndpointSettings, plan: Plan) -> list[TokenThreshold]:
    """What the alarms on tokens of one variant watch by percentile; none of an unknown server."""
    if plan.request.server_of_metrics is None:
        return []
    own = endpoint.alarms.tokens
    planned = plan.tokens.thresholds if plan.tokens else ()
    thresholds: list[TokenThreshold] = []
    for measures, name in _STATED.items():
        stated = getattr(own, name)
        if stated == "planned":
            thresholds += [each for each in planned if each.measures == measures]
        else:
            thresholds += [
                token_threshold(measures, percentile, each.total_seconds())
                for percentile, each in stated.items()
            ]
    return thresholds


def token_alarm_count(endpoint: EndpointSettings, plan: Plan) -> int:
    """How many alarms on tokens one variant has."""
    if plan.request.server_of_metrics is None:
        return 0
    own = endpoint.alarms.tokens
    gauges = (own.waiting_requests, own.kv_cache_use)
    return len(token_limits(endpoint, plan)) + sum(gauge is not None for gauge in gauges)


def stated_limits(endpoint: EndpointSettings, plan: Plan) -> Iterator[Decision[Any]]:
    """Decisions on limits that the settings state in place of the plan's."""
    for limit in token_limits(endpoint, plan):
        if not limit.target:  # no target: a threshold of one's own
            yield limit.decision
