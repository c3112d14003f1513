"""Endpoints as SageMaker has them: what runs, as what it is configured, and of which models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import did_you_mean, rule
from .calls import Account
from .sessions import Unreadable

ENDPOINT_EXISTS = rule(
    "LLA101",
    "the endpoint does not exist in this account and region",
    fix="`low-latency list` shows the endpoints. --region and --profile choose another account.",
    source="/sagemaker/latest/APIReference/API_DescribeEndpoint.html",
)
_MOST = 10  # names in one message
_PAGE = 100  # endpoints in one answer: AWS gives 10 where nothing is asked for
#: What DescribeEndpoint tells of an update, and of the variants before it.
_PENDING = ("PendingDeploymentSummary", "ProductionVariants", "ShadowProductionVariants")
#: SageMaker's codes for what does not exist.
_MISSING = ("ValidationException", "ResourceNotFound", "ResourceNotFoundException")


@dataclass(frozen=True, slots=True)
class DeployedVariant:
    name: str
    running: Mapping[str, Any]  # as DescribeEndpoint tells it; empty before it has been in service
    # as DescribeEndpointConfig tells it; empty where that could not be read
    configured: Mapping[str, Any]

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Its instance type, or those of its pools; none where that is not known."""
        if kind := self.configured.get("InstanceType"):
            return (str(kind),)
        pools = self.configured.get("InstancePools") or self.running.get("InstancePools") or ()
        return tuple(str(pool["InstanceType"]) for pool in pools)

    @property
    def routing(self) -> str:
        """Its routing strategy: RANDOM where none is stated; empty where that is not known."""
        return self.stated_routing or ("RANDOM" if self.configured else "")

    @property
    def stated_routing(self) -> str | None:
        stated = (self.configured or self.running).get("RoutingConfig") or {}
        strategy: str | None = stated.get("RoutingStrategy")
        return strategy

    @property
    def current_instances(self) -> int | None:
        """How many instances serve; ``None`` where SageMaker does not tell."""
        return self.running.get("CurrentInstanceCount")

    @property
    def desired_instances(self) -> int | None:
        """How many are wanted; ``None`` where SageMaker does not tell."""
        return self.running.get("DesiredInstanceCount")

    @property
    def model_name(self) -> str | None:
        """Its model; ``None`` where it hosts inference components, or that is not known."""
        return self.configured.get("ModelName") or None


@dataclass(frozen=True, slots=True)
class EndpointUpdate:
    """A new configuration on its way into service, or on its way out again.

    Until it ends, DescribeEndpoint names the configuration that served before, and callers may be
    answered by either fleet.
    """

    configuration_name: str  # of the new fleet; empty where SageMaker does not tell
    begun: datetime | None  # ``None`` where SageMaker does not tell
    stage: str  # such as Creating, Baking or ActivatingTraffic; empty where SageMaker does not tell
    rolling_back: bool
    variants: Mapping[str, Mapping[str, Any]]  # of the new fleet, as DescribeEndpoint tells them
    by_aws: bool = False  # whether it is SageMaker's maintenance, which changes no setting

    @property
    def words(self) -> str:
        """What happens, to which configuration and since when, without a verb: for a cell."""
        since = f" since {self.begun:%H:%M}" if self.begun else ""
        stage = f" ({self.stage})" if self.stage else ""
        return f"{self.verb}{since}{stage}"

    @property
    def verb(self) -> str:
        """What happens, and to which configuration."""
        if self.by_aws:
            return "under SageMaker's maintenance"
        if self.rolling_back:
            return (
                f"rolling back{f' from {self.configuration_name}' * bool(self.configuration_name)}"
            )
        return f"updating{f' to {self.configuration_name}' * bool(self.configuration_name)}"


@dataclass(frozen=True, slots=True)
class DeployedEndpoint:
    """An endpoint and its configuration as SageMaker describes them."""

    description: Mapping[str, Any]  # DescribeEndpoint's answer
    # DescribeEndpointConfig's, of the configuration that serves; empty where it was not read
    configuration: Mapping[str, Any]

    @property
    def name(self) -> str:
        """In the case it was created with."""
        return str(self.description["EndpointName"])

    @property
    def status(self) -> str:
        return str(self.description["EndpointStatus"])

    @property
    def failure_reason(self) -> str:
        """Why the last change failed; empty where none did."""
        return str(self.description.get("FailureReason", ""))

    @property
    def configuration_name(self) -> str:
        """Of the configuration that serves: while an update runs, of the one before it."""
        return str(self.description["EndpointConfigName"])

    @property
    def update(self) -> EndpointUpdate | None:
        """The update or roll-back under way; ``None`` without one.

        A change of instance counts or weights makes an endpoint Updating too, and is none: it starts
        no new fleet. SageMaker's own maintenance (SystemUpdating) is one: it replaces instances.
        https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_PendingDeploymentSummary.html
        """
        pending = self.description.get("PendingDeploymentSummary") or {}
        rolling_back = self.status == "RollingBack"
        by_aws = self.status == "SystemUpdating"
        if self.status == "Creating" or not (pending or rolling_back or by_aws):
            return None
        variants = pending.get("ProductionVariants") or ()
        statuses = [status for variant in variants for status in variant.get("VariantStatus") or ()]
        # StartTime is the update's; that of a variant's status is the roll-back's.
        turned = [status["StartTime"] for status in statuses if "StartTime" in status]
        begun = min(turned, default=None) if rolling_back else None
        return EndpointUpdate(
            configuration_name=str(pending.get("EndpointConfigName", "")),
            begun=begun or pending.get("StartTime"),
            stage=next((str(status["Status"]) for status in statuses), ""),
            rolling_back=rolling_back,
            variants={variant["VariantName"]: variant for variant in variants},
            by_aws=by_aws,
        )

    @property
    def rollback_alarms(self) -> tuple[str, ...]:
        """Names of the alarms that end the last update that was asked for, where it names any."""
        deployment = self.description.get("LastDeploymentConfig") or {}
        automatic = deployment.get("AutoRollbackConfiguration") or {}
        return tuple(str(alarm["AlarmName"]) for alarm in automatic.get("Alarms") or ())

    @property
    def shadows(self) -> list[str]:
        shadows = self.configuration.get("ShadowProductionVariants") or ()
        return [str(shadow["VariantName"]) for shadow in shadows]

    @property
    def publish_seconds(self) -> int:
        """How often its utilization comes, and with enhanced metrics its invocations too."""
        metrics = self.configuration.get("MetricsConfig") or {}
        return int(metrics.get("MetricPublishFrequencyInSeconds", 60))

    @property
    def variants(self) -> dict[str, DeployedVariant]:
        """Production variants by name; one that never was in service may be configured only."""
        running, configured = (
            {variant["VariantName"]: variant for variant in part.get("ProductionVariants") or ()}
            for part in (self.description, self.configuration)
        )
        return {
            name: DeployedVariant(name, running.get(name, {}), configured.get(name, {}))
            for name in {**running, **configured}
        }


def describe_endpoint(account: Account, name: str) -> Mapping[str, Any] | None:
    """What SageMaker says of an endpoint; ``None`` when there is none of this name."""
    return account.read("sagemaker", "describe_endpoint", _MISSING, EndpointName=name)


def describe_configuration(account: Account, name: str) -> Mapping[str, Any] | None:
    """What SageMaker says of a configuration; ``None`` when there is none of this name."""
    return account.read("sagemaker", "describe_endpoint_config", _MISSING, EndpointConfigName=name)


def read_endpoint(account: Account, name: str) -> DeployedEndpoint | None:
    """The endpoint and its configuration; ``None`` when there is no such endpoint."""
    description = describe_endpoint(account, name)
    if description is None:
        return None
    return DeployedEndpoint(description, _serving(account, description["EndpointConfigName"]))


def read_coming(account: Account, endpoint: DeployedEndpoint) -> DeployedEndpoint | None:
    """The endpoint as it will be after the update under way; ``None`` where SageMaker does not say.

    While it is rolled back, as it would have been.
    """
    pending = endpoint.description.get("PendingDeploymentSummary") or {}
    if endpoint.update is None or not pending.get("EndpointConfigName"):
        return None
    name = pending["EndpointConfigName"]
    configuration = describe_configuration(account, name)
    if configuration is None:
        raise Unreadable(f"{name}, the configuration of the update, is deleted")
    now = {key: value for key, value in endpoint.description.items() if key not in _PENDING}
    return DeployedEndpoint({**now, **pending}, configuration)


def existing_endpoint(account: Account, name: str) -> DeployedEndpoint:
    """The endpoint; a configuration that cannot be read is :attr:`.Account.unknown`."""
    description = describe_endpoint(account, name)
    if description is None:
        allowed, known = listed(account, "endpoints", endpoint_names)
        raise ENDPOINT_EXISTS.error(
            got=" in ".join(filter(None, (name, account.region))),
            allowed=allowed,
            fix=f"{did_you_mean(name, known)} {ENDPOINT_EXISTS.fix}".strip(),
        )
    return DeployedEndpoint(
        description,
        account.known("endpoint configuration", _serving, description["EndpointConfigName"]) or {},
    )


def _serving(account: Account, name: str) -> Mapping[str, Any]:
    configuration = describe_configuration(account, name)
    if configuration is None:
        raise Unreadable(f"{name}, the configuration that serves, is deleted")
    return configuration


def endpoints_in_service(account: Account) -> list[str]:
    endpoints = endpoints_of_region(account, StatusEquals="InService")
    return [str(each["EndpointName"]) for each in endpoints]


def endpoint_names(account: Account) -> list[str]:
    return sorted(str(endpoint["EndpointName"]) for endpoint in endpoints_of_region(account))


def listed(
    account: Account, what: str, read: Callable[[Account], list[str]]
) -> tuple[str, list[str]]:
    """The names that there are, in words too: none, or why they are not known, is said as that."""
    found = account.known(what, read)
    if found is None:
        return f"a name; the {what} could not be listed: {account.unknown[-1].why}", []
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ", ".join(
        found[:_MOST]
    ) + more or f"none: there are no {what} in {account.region}", found


def endpoints_of_region(account: Account, **chosen: str) -> list[Mapping[str, Any]]:
    """ListEndpoints' summaries of the account and region; of all without its arguments."""
    return account.every("sagemaker", "list_endpoints", "Endpoints", MaxResults=_PAGE, **chosen)


def model_description(account: Account, name: str) -> Mapping[str, Any] | None:
    """What SageMaker says of a model; ``None`` when there is none of this name."""
    return account.read("sagemaker", "describe_model", _MISSING, ModelName=name)


def describe_model(account: Account, name: str) -> Mapping[str, Any]:
    """What SageMaker says of a model that is in use."""
    model = model_description(account, name)
    if model is None:
        raise Unreadable(f"the model {name} is deleted")
    return model


def containers_of(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers of a model, as DescribeModel tells them."""
    primary = model.get("PrimaryContainer")
    return [primary] if primary else list(model.get("Containers") or ())
