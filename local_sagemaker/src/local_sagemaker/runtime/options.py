"""How the local runtime behaves; what AWS fixes is the default."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from ..argument_kinds import check_kinds
from ..model_servers.specifications import ModelServer, check_numbers, from_document, to_documents
from ..promql.series import Histograms, Names
from .clock import check_clock

EndpointHandler = Literal["waits", "compares"]
UnchangedConfiguration = Literal["refused", "ignored", "deployed"]
Permissions = Literal["enforced", "ignored"]
CreationOrder = Literal["late", "late-reversed"]

_INTERFACES_STAY = 1200.0
"""Longer than the 15 minutes for which CloudFormation tries to delete a security group: stacks do
fail to delete, which is all that is known (cloudformation-coverage-roadmap issue 1327)."""

LARGEST_PAYLOAD = 25 * 1024 * 1024
LARGEST_SERVERLESS = 4 * 1024 * 1024
"""Source: SageMaker developer guide, "Model deployment options" (25 MB for real time, 4 MB serverless)."""


@dataclass(frozen=True)
class RuntimeOptions:
    """Settings of the local runtime."""

    # model servers by image; see `model_server_for`. An endpoint with none of them answers with
    # its request and is in service at once; with one of them it is started, updated and scaled as
    # AWS does.
    model_servers: Mapping[str, ModelServer] = field(default_factory=dict)
    invocation_timeout: float = 60.0  # real seconds that a model may take; by default 60, as at AWS
    # real seconds that a response stream may take; by default 480, as at AWS
    stream_timeout: float = 480.0
    # whether the runtime hangs up on a model that streams to a caller who has hung up. What AWS
    # does is not documented; by default it does not, which is the worse: the model generates to
    # its end for nobody.
    hang_up_reaches_model: bool = False
    # seconds by the clock from the order of an instance to the start of its container; by default
    # 0. At AWS it is minutes.
    provision_time: float = 0.0
    # instances that all endpoints together may run at a time, as if AWS had no more; what would
    # start beyond it fails with InsufficientInstanceCapacity. By default no limit.
    instance_limit: int | None = None
    # seconds by the clock for which SageMaker's network interfaces stay when their fleet has
    # ended. By default 20 minutes; by a clock that is not faster than real time one second, and
    # none by one that stands still, so that nobody waits for real minutes.
    interfaces_stay: float | None = None
    # whether they stay for good when the execution role, or its right to delete them, has gone
    # before they have. Not documented; by default yes, which is the worse.
    interfaces_need_role: bool = True
    # routers in front of the instances; connections are dealt to them in turn, and each sees only
    # the outstanding requests it sent itself. By default 1.
    routers: int = 1
    # send a request that came by a zone's name to that zone's instances when there are any; by
    # default no: how SageMaker's routing meets zones is not documented
    zone_affinity: bool = False
    # the account's quota of Lambda functions that run at a time; by default an established
    # account's 1000. New accounts have 10, and let none be reserved.
    concurrent_executions: int = 1000
    # the account's quota of each instance type "for endpoint usage", to which CreateEndpoint and
    # UpdateEndpoint are held; by default 1000. AWS's own differ by type and account, from 0 on.
    endpoint_instances: int = 1000
    # whether the first fleet of an endpoint has the series with EndpointConfigName too. A fleet
    # that a deployment brought in has them from its first traffic on, for good (SageMaker
    # developer guide, "Auto-Rollback Configuration and Monitoring": they "last even after the
    # deployment is complete"); of the first one AWS says nothing. By default it has: whoever takes
    # the series for a deployment is wrong for longer.
    configuration_metrics_from_create: bool = True
    # beyond so many each real second InvokeEndpoint is throttled; by default never
    requests_per_second: float | None = None
    # what CloudFormation does after UpdateEndpoint; nobody has told what AWS's handler does.
    # ``waits`` (the default, and the worse) takes InService for success, also where SageMaker
    # rolled the update back and serves the former configuration, as Terraform's provider does
    # (hashicorp/terraform-provider-aws#46663, #48997, #39099); ``compares`` fails then.
    endpoint_handler: EndpointHandler = "waits"
    # in which of the orders that a template allows CloudFormation creates and updates, one after
    # the other; at AWS it begins at once what does not need each other. ``late`` (the default, and
    # the worst): what others might miss comes last, policies and attachments last of all;
    # ``late-reversed``: the same with those first of them that nothing waits for.
    creation_order: CreationOrder = "late"
    # what UpdateEndpoint does with the configuration that serves already. ``refused`` (the
    # default) is what the API reference said until 2020: "You cannot update an endpoint with the
    # current EndpointConfig"; today's only says "you must create a new EndpointConfig".
    # ``ignored``: nothing happens; ``deployed``: a deployment like any other.
    unchanged_configuration: UnchangedConfiguration = "refused"
    # whether an endpoint says FailureReason after an update that SageMaker rolled back, until the
    # next one (aws-controllers-k8s/sagemaker-controller#7); by default it does not, as terraform-
    # provider-aws#49020 reports
    keeps_failure_reason: bool = False
    # whether CreateEndpointConfig takes ManagedInstanceScaling with MinInstanceCount 0; by default
    # yes, as measured in us-east-1. In eu-west-3 it was refused (https://github.com/stdapi-
    # ai/stdapi.ai/issues/43).
    managed_scaling_to_zero: bool = True
    # how CloudWatch keeps what containers told at their `/metrics`: see `Form`. By default ``as-
    # scraped`` and ``exponential``; ``underscores`` and ``explicit`` are what another page of
    # AWS's has. Nobody has told which of them returns data.
    metric_names: Names = "as-scraped"
    # how it keeps their histograms; see metric_names
    metric_histograms: Histograms = "exponential"
    # whether PromQL finds nothing until StartOTelEnrichment has been called: "required so that
    # your metrics are queryable" (SageMaker developer guide, "Detailed observability"), which
    # CloudWatch's user guide contradicts. By default yes, which is the worse.
    queries_need_enrichment: bool = True
    # whether IAM's policies are judged: ``enforced`` (the default) allows a call of a function,
    # task, model or caller with a role or user's key as the policies stand at that moment;
    # ``ignored`` lets everybody do everything
    permissions: Permissions = "enforced"
    # seconds of the runtime's clock per real second; 0 stands still until it is advanced. By
    # default 1.
    clock_speed: float = 1.0
    # where the runtime's clock starts, in seconds since 1970; by default now. Metrics of a fast
    # clock that starts in the past lie in the past, where reports look for them.
    clock_start: float | None = None
    seed: int | None = None  # of the random choices; by default they differ from run to run

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        # Of texts to choose from, those to choose from are the better answer.
        kinds = {name: str if get_origin(hint) is Literal else hint for name, hint in hints.items()}
        check_kinds(kinds, {name: getattr(self, name) for name in kinds})
        if self.routers < 1:
            raise ValueError(f"at least one router is needed: {self.routers}")
        for name in ("invocation_timeout", "stream_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0: {getattr(self, name)}")
        for name, hint in hints.items():
            choices = get_args(hint) if get_origin(hint) is Literal else ()
            if choices and getattr(self, name) not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}: {getattr(self, name)}")
        for name in ("provision_time", "interfaces_stay"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must not be negative: {getattr(self, name)}")
        check_numbers(self)
        check_clock(self.clock_speed, self.clock_start)

    def interfaces_time(self, speed: float) -> float:
        """Seconds for which network interfaces stay, by a clock of this speed."""
        if self.interfaces_stay is not None:
            return self.interfaces_stay
        return _INTERFACES_STAY if speed > 1 else min(speed, 1.0)

    @classmethod
    def of_texts(cls, pairs: Iterable[str]) -> RuntimeOptions:
        """Read options as a command line has them.

        Examples
        --------
        >>> options = RuntimeOptions.of_texts(["interfaces_stay=60", "keeps_failure_reason=yes"])
        >>> options.interfaces_stay, options.keeps_failure_reason
        (60.0, True)
        """
        types = get_type_hints(cls)
        for own in ("model_servers", "clock_speed"):  # they have options of their own
            del types[own]
        found = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            if name not in types:
                raise ValueError(f"{name!r} is none of {', '.join(types)}")
            try:
                found[name] = TypeAdapter(types[name]).validate_python(value)
            except ValidationError as error:
                raise ValueError(f"{pair}: {error.errors()[0]['msg']}") from None
        return cls(**found)

    def to_json(self) -> str:
        """Write them for another process."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        fields["model_servers"] = to_documents(self.model_servers)
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> RuntimeOptions:
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        fields["model_servers"] = {n: from_document(d) for n, d in fields["model_servers"].items()}
        return cls(**fields)
