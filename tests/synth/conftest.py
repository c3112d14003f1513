"""Apps and stacks for the tests of templates: what a user of this repository's cdk.json sees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Template
from constructs import Construct

from local_sagemaker.cloudwatch.metric_math import AGGREGATES, functions_in, parse_expression
from local_sagemaker.cloudwatch.queries import FUNCTIONS
from local_sagemaker.promql.queries import parse
from low_latency_endpoint import (
    AlarmOptions,
    ClientZones,
    Container,
    ContainerImage,
    CoreDump,
    DataCapture,
    DeploymentPolicy,
    Endpoint,
    EndpointConfiguration,
    IEndpoint,
    InferenceAmi,
    InstancePool,
    InstanceType,
    LatencyAlarms,
    LatencyTarget,
    LoadTestFleet,
    LowLatencyEndpoint,
    MeasuredThroughput,
    MetricsPublishing,
    Model,
    ModelData,
    ProductionVariant,
    RoutingStrategy,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError, ErrorRule
from low_latency_endpoint.plan.launched_names import as_named
from low_latency_endpoint.synthesis.construct_tree import alarm_name_of
from tests.cdk_features import needs_cdk
from tools.fuzzing.agreement import folder_of_files

ROOT = Path(__file__).parents[2]
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
REFERENCE = r'"Ref": "(\w+)"|"Fn::GetAtt": \["(\w+)"'
TOKEN = "${Token["
DASHBOARD = "AWS::CloudWatch::Dashboard"
FLAGS: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]


@pytest.fixture(autouse=True)
def texts_for_people(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the library says in a test, to people: none of it shows them a token of CDK."""
    said: list[str] = []

    def recorded(owner: Any, method: str) -> None:
        own = getattr(owner, method)

        def says(self: Any, *texts: Any, **named: Any) -> Any:
            said.extend(map(str, (*texts, *named.values())))
            return own(self, *texts, **named)

        monkeypatch.setattr(owner, method, says)

    for method in ("add_warning_v2", "add_warning", "add_error", "add_info", "add_info_v2"):
        recorded(cdk.Annotations, method)
    raised: list[ConfigurationError] = []
    made = ErrorRule.error

    def raises(self: ErrorRule, **given: Any) -> ConfigurationError:
        error = made(self, **given)
        raised.append(error)
        return error

    monkeypatch.setattr(ErrorRule, "error", raises)
    yield said
    said.extend(map(str, raised))
    assert [text for text in said if TOKEN in text] == []


def name_at_synth(endpoint: IEndpoint) -> str:
    """The name in the stack that has the app's name: stacks beside it have it as text."""
    return endpoint.name_in(cdk.Stack())


class Synthesised(dict[str, Any]):
    """A template, with the questions that tests ask of it."""

    def of_type(self, type: str) -> dict[str, dict[str, Any]]:
        """Logical ID -> properties of the resources of a type."""
        return {
            logical_id: resource.get("Properties", {})
            for logical_id, resource in self.get("Resources", {}).items()
            if resource["Type"] == type
        }

    def only(self, type: str) -> dict[str, Any]:
        """The properties of the one resource of a type."""
        return self.of_type(type)[self.only_id(type)]

    def only_id(self, type: str) -> str:
        """The logical ID of the one resource of a type."""
        (logical_id,) = self.of_type(type)
        return logical_id

    def depends_on(self, logical_id: str) -> list[str]:
        """What a resource states in DependsOn."""
        return self["Resources"][logical_id].get("DependsOn", [])

    def interface(self, service: str = "sagemaker.runtime") -> dict[str, Any]:
        """The properties of the one interface endpoint of a service."""
        (found,) = (
            endpoint
            for endpoint in self.of_type("AWS::EC2::VPCEndpoint").values()
            if endpoint["VpcEndpointType"] == "Interface"
            and endpoint["ServiceName"].endswith(f".{service}")
        )
        return found

    @property
    def variant(self) -> dict[str, Any]:
        """The one production variant of the one configuration."""
        (found,) = self.only("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
        return dict(found)

    @property
    def container(self) -> dict[str, Any]:
        """The one container of the one model."""
        return dict(self.only("AWS::SageMaker::Model")["PrimaryContainer"])

    @property
    def deployment(self) -> dict[str, Any]:
        """How the one endpoint is updated."""
        return dict(self.only("AWS::SageMaker::Endpoint")["DeploymentConfig"])

    def needs(self, logical_id: str) -> set[str]:
        """All that a resource refers to or waits for, over any number of steps."""
        found: set[str] = set()
        open_ends = [logical_id]
        while open_ends:
            resource = self["Resources"][open_ends.pop()]
            text = json.dumps(resource.get("Properties", {}))
            named = {name for pair in re.findall(REFERENCE, text) for name in pair}
            new = named & self["Resources"].keys() | {*resource.get("DependsOn", [])}
            open_ends += new - found
            found |= new
        return found

    def made_of(self, alarms: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Key -> properties of alarms that a construct has by these keys."""
        stack = cdk.Stack.of(next(iter(alarms.values())))
        ids = {key: stack.resolve(alarm_name_of(each))["Ref"] for key, each in alarms.items()}
        return {key: self["Resources"][name]["Properties"] for key, name in ids.items()}

    @property
    def model_policies(self) -> dict[str, dict[str, Any]]:
        """Logical ID -> properties of the policies that models wait for."""
        waited_for = {
            name
            for model in self.of_type("AWS::SageMaker::Model")
            for name in self.depends_on(model)
        }
        found = self.of_type("AWS::IAM::Policy")
        return {name: policy for name, policy in found.items() if name in waited_for}

    @property
    def model_rights(self) -> list[dict[str, Any]]:
        """The statements of these policies."""
        return [
            statement
            for policy in self.model_policies.values()
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    @property
    def granted(self) -> dict[str, dict[str, Any]]:
        """Action -> the last statement that allows it in a policy on a role."""
        return by_action(
            statement
            for policy in self.of_type("AWS::IAM::Policy").values()
            for statement in policy["PolicyDocument"]["Statement"]
        )

    def rights_of(self, role: str) -> list[dict[str, Any]]:
        """The statements of all inline policies of a role in the template, by its logical ID."""
        own = self["Resources"][role]["Properties"].get("Policies", [])
        attached = [
            policy
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Roles"]
        ]
        return [
            statement
            for policy in (*own, *attached)
            for statement in policy["PolicyDocument"]["Statement"]
        ]

    @property
    def _widgets(self) -> list[dict[str, Any]]:
        bodies = [each["DashboardBody"] for each in self.of_type(DASHBOARD).values()]
        return [widget for body in bodies for widget in json.loads(_text(body))["widgets"]]

    @property
    def queries(self) -> list[str]:
        """Every PromQL query of alarms and dashboards."""
        found = [
            alarm["EvaluationCriteria"]["PromQLCriteria"]["Query"]
            for alarm in self.of_type("AWS::CloudWatch::Alarm").values()
            if "EvaluationCriteria" in alarm
        ]
        for widget in self._widgets:
            if widget["type"] == "chart":
                found += [each["query"] for each in widget["properties"]["data"]["queries"]]
        return [_text(query) for query in found]

    @property
    def expressions(self) -> list[str]:
        """Every metric math expression of alarms and dashboards."""
        metrics = [
            metric
            for alarm in self.of_type("AWS::CloudWatch::Alarm").values()
            for metric in alarm.get("Metrics", ())
        ]
        found = [_text(metric["Expression"]) for metric in metrics if "Expression" in metric]
        for widget in self._widgets:
            rows = [row[-1] for row in widget["properties"].get("metrics", ())]
            found += [row["expression"] for row in rows if "expression" in row]
        return found

    def function_of(self, resource_type: str) -> dict[str, Any]:
        """The properties of the function behind a custom resource's type."""
        token = self.only(resource_type)["ServiceToken"]
        properties: dict[str, Any] = self["Resources"][token["Fn::GetAtt"][0]]["Properties"]
        return properties

    @property
    def types(self) -> set[str]:
        """The resource types in the template."""
        return {resource["Type"] for resource in self.get("Resources", {}).values()}


def by_action(statements: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Action -> the last statement that has it."""
    found = {}
    for statement in statements:
        actions = statement["Action"]
        found |= dict.fromkeys([actions] if isinstance(actions, str) else actions, statement)
    return found


def warnings_in(scope: Construct, part: str = "") -> list[str]:
    """The warnings of all constructs in a scope, as far as a part is in their texts."""
    return [
        str(entry.data)
        for construct in scope.node.find_all()
        for entry in construct.node.metadata
        if entry.type == "aws:cdk:warning" and part in str(entry.data)
    ]


def warnings_after_synth(scope: Construct, part: str = "") -> list[str]:
    """As warnings_in, with those that synthesis itself has added."""
    cdk.App.of(scope).synth()
    return warnings_in(scope, part)


def _by_annotations(construct: Construct, id: str) -> None:
    cdk.Annotations.of(construct).acknowledge_warning(id, "Known, and meant so.")


def _by_validations(construct: Construct, id: str) -> None:
    known = cdk.Acknowledgment(id=f"Annotation::{id}", reason="Known, and meant so.")
    cdk.Validations.of(construct).acknowledge(known)


#: The ways in which a user says that a warning is known.
ACKNOWLEDGED = pytest.mark.parametrize(
    "acknowledge", [_by_annotations, pytest.param(_by_validations, marks=needs_cdk("Validations"))]
)


def alarms_on(
    stack: cdk.Stack,
    endpoint: IEndpoint,
    id: str = "Alarms",
    *,
    new_fleet_only: bool = False,
    **watched: Any,
) -> LatencyAlarms:
    """Alarms on what is stated, and on nothing else."""
    options = replace(AlarmOptions.none(), **watched)
    return LatencyAlarms(
        stack, id, endpoint=endpoint, options=options, new_fleet_only=new_fleet_only
    )


def _text(value: Any) -> str:
    """A property's text, with a word for what CloudFormation puts in."""
    if isinstance(value, dict):
        separator, parts = value.get("Fn::Join", ("", ["1"]))
        return separator.join(map(_text, parts))
    return str(value)


def make_stack(
    *,
    app: cdk.App | None = None,
    name: str = "Serving",
    region: str | None = "us-east-1",
    account: str | None = "123456789012",
    context: dict[str, Any] | None = None,
) -> cdk.Stack:
    """A stack in an app of its own; ``region=None`` for one without an environment."""
    if app is None:
        app = cdk.App(analytics_reporting=False, context={**FLAGS, **(context or {})})
    env = cdk.Environment(account=account, region=region) if region else None
    return cdk.Stack(app, name, env=env)


def make_template(stack: cdk.Stack) -> Synthesised:
    """The stack's template; the app is synthesised, so nothing can be added afterwards."""
    # As in the stack of the app's own name: test_names_and_rights.py has the others.
    template = Synthesised(as_named(Template.from_stack(stack).to_json()))
    # In every template of the suite the local AWS knows all that CloudWatch is asked.
    for query in template.queries:
        parse(query)
    for expression in template.expressions:
        assert functions_in(parse_expression(expression)) <= {*AGGREGATES, *FUNCTIONS}, expression
    return template


class Parts:
    """The smallest valid part of each kind; keyword arguments replace what it is made of."""

    image = ("huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")

    def network(self, stack: cdk.Stack, id: str = "Network", **given: Any) -> ZoneAlignedNetwork:
        given.setdefault("client_zones", ClientZones.of_ids("use1-az1", "use1-az2"))
        return ZoneAlignedNetwork(stack, id, **given)

    def link(
        self,
        stack: cdk.Stack,
        network: ZoneAlignedNetwork | None = None,
        id: str = "Link",
        **given: Any,
    ) -> RuntimePrivateLink:
        """In this network, by default in a new one."""
        return RuntimePrivateLink(stack, id, network=network or self.network(stack), **given)

    def container(self, **given: Any) -> Container:
        given.setdefault("image", ContainerImage.from_dlc(*self.image))
        given.setdefault("data", ModelData.from_uri("s3://models/distilbert/model.tar.gz"))
        return Container(**given)

    def model(self, stack: cdk.Stack, id: str = "Model", **given: Any) -> Model:
        given.setdefault("network", None)
        given["network"] = given["network"] or self._shared_network(stack)
        given.setdefault("containers", [self.container()])
        return Model(stack, id, **given)

    def serving(self, stack: cdk.Stack, id: str = "Model", **container: Any) -> Model:
        """A model of one container, of which this is given."""
        return self.model(stack, id, containers=[self.container(**container)])

    def variant(self, stack: cdk.Stack, **given: Any) -> ProductionVariant:
        given.setdefault("name", "primary")
        if "model" not in given:
            given["model"] = self.model(stack, f"Model-{given['name']}")
        if "instance_type" not in given and "instance_pools" not in given:
            given["instance_type"] = InstanceType("ml.m5.xlarge")
        return ProductionVariant(**given)

    def configuration(
        self, stack: cdk.Stack, id: str = "Configuration", **given: Any
    ) -> EndpointConfiguration:
        given["variants"] = given.get("variants") or [self.variant(stack)]
        return EndpointConfiguration(stack, id, **given)

    def endpoint(self, stack: cdk.Stack, id: str = "Endpoint", **given: Any) -> Endpoint:
        """Of a configuration, or of one with some variants."""
        variants = given.pop("variants", None)
        made = given.pop("configuration", None) or self.configuration(stack, variants=variants)
        return Endpoint(stack, id, configuration=made, **given)

    def fleet(
        self,
        stack: cdk.Stack,
        id: str = "Fleet",
        *,
        network: ZoneAlignedNetwork | None = None,
        private_link: RuntimePrivateLink | None = None,
        **given: Any,
    ) -> LoadTestFleet:
        network = network or self._shared_network(stack)
        link = private_link or RuntimePrivateLink(stack, "Link", network=network)
        image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/load-generator:1"
        stated = {"endpoint": "Sentiment", "image": ContainerImage.from_uri(image)}
        return LoadTestFleet(stack, id, network=network, private_link=link, **stated | given)

    def pattern(self, stack: cdk.Stack, id: str = "Sentiment", **given: Any) -> LowLatencyEndpoint:
        if not {"network", "client_zones"} & given.keys():
            given["client_zones"] = ClientZones.of_ids("use1-az1", "use1-az2")
        stated = {
            "containers": [self.container()],
            "instance_type": InstanceType("ml.m5.xlarge"),
            "latency": LatencyTarget(p99=Duration.millis(200)),
        }
        return LowLatencyEndpoint(stack, id, **stated | given)

    def pattern_in(self, stack: cdk.Stack, vpc: ec2.IVpc, **given: Any) -> LowLatencyEndpoint:
        """The pattern in a VPC that exists, by default for callers in all its zones."""
        return self.pattern(stack, vpc=vpc, **{"client_zones": ClientZones.of_vpc(vpc), **given})

    def vpc(self, stack: cdk.Stack, id: str = "Vpc", **given: Any) -> ec2.IVpc:
        """One that exists, with a subnet in each of two zones."""
        stated = {
            "vpc_id": "vpc-0123456789abcdef0",
            "availability_zones": ["us-east-1a", "us-east-1b"],
            "private_subnet_ids": SUBNETS,
        }
        return ec2.Vpc.from_vpc_attributes(stack, id, **stated | given)

    def network_in(
        self, stack: cdk.Stack, vpc: ec2.IVpc | None = None, id: str = "Network", **given: Any
    ) -> ZoneAlignedNetwork:
        """A network for callers in two zones of a VPC that exists."""
        given.setdefault("client_zones", ClientZones.of_names("us-east-1a", "us-east-1b"))
        return ZoneAlignedNetwork.in_vpc(stack, id, vpc=vpc or self.vpc(stack), **given)

    def _shared_network(self, stack: cdk.Stack) -> ZoneAlignedNetwork:
        found = stack.node.try_find_child("Network")
        if isinstance(found, ZoneAlignedNetwork):
            return found
        region = None if cdk.Token.is_unresolved(stack.region) else stack.region
        zones = ClientZones.of_ids("use1-az1", "use1-az2")
        if region not in (None, "us-east-1"):
            zones = ClientZones.of_names(f"{region}a", f"{region}b")
        return self.network(stack, client_zones=zones)


@pytest.fixture(scope="session")
def new_stack() -> Callable[..., cdk.Stack]:
    return make_stack


@pytest.fixture(scope="session")
def template_of() -> Callable[[cdk.Stack], Synthesised]:
    return make_template


@pytest.fixture(scope="session")
def parts() -> Parts:
    return Parts()


@pytest.fixture(scope="session")
def smallest(parts: Parts) -> Callable[[str], Synthesised]:
    """The template of the smallest part of a kind, for tests that only read it."""

    @cache
    def made(kind: str) -> Synthesised:
        stack = make_stack()
        getattr(parts, kind)(stack)
        return make_template(stack)

    return made


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One with the files that settings name."""
    with folder_of_files() as made:
        yield made


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()


# --- whole stacks, for the validators and the snapshots ------------------------------------------


def _private_link(stack: cdk.Stack, parts: Parts) -> None:
    callers = ec2.Vpc.from_vpc_attributes(
        stack, "Callers", vpc_id="vpc-0fedcba9876543210", availability_zones=["us-east-1a"]
    )
    link = RuntimePrivateLink(
        stack,
        "Link",
        network=parts.network(stack),
        bidirectional_streaming=True,
        sagemaker_api=True,
        hosted_zone_vpcs=[callers],
    )
    link.allow_from(ec2.Peer.ipv4("10.1.0.0/16"))
    link.serve("sentiment")
    for zone, name in link.zonal_dns_names.items():
        cdk.CfnOutput(stack, f"Dns-{zone}", value=name)


def _models(stack: cdk.Stack, parts: Parts) -> None:
    bucket = s3.Bucket.from_bucket_attributes(
        stack,
        "Models",
        bucket_name="models",
        encryption_key=kms.Key.from_key_arn(
            stack,
            "Key",
            "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-4000-8000-000000000000",
        ),
    )
    parts.model(
        stack,
        "Pipeline",
        containers=[
            parts.container(hostname="tokenize"),
            parts.container(
                hostname="score",
                data=ModelData.from_s3(bucket, "llama/"),
                image=ContainerImage.from_uri(
                    "123456789012.dkr.ecr.us-east-1.amazonaws.com/scorer:7"
                ),
            ),
        ],
        inference_mode="Direct",
        network_isolation=True,
    )
    parts.serving(
        stack, "Tenants", data=ModelData.from_uri("s3://models/tenants/"), multi_model=True
    )
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    parts.model(stack, "OwnRole", role=role)


def _variants(stack: cdk.Stack, parts: Parts) -> None:
    model = parts.model(stack)
    gpu = InstanceType("ml.g5.xlarge")
    parts.configuration(
        stack,
        variants=[
            parts.variant(
                stack,
                model=model,
                startup_health_check_timeout=Duration.minutes(5),
                routing=RoutingStrategy.prefix_aware(prefix_length=4096, concurrency_threshold=16),
            ),
            parts.variant(
                stack,
                model=model,
                name="pools",
                weight=0.5,
                instance_pools=[
                    InstancePool(InstanceType("ml.m5.xlarge"), 1),
                    InstancePool(InstanceType("ml.m6i.xlarge"), 2),
                ],
            ),
            parts.variant(
                stack,
                model=model,
                name="dark",
                weight=0,
                instance_type=gpu,
                inference_ami=InferenceAmi("al2-ami-sagemaker-inference-gpu-2"),
            ),
        ],
        data_capture=DataCapture(s3="s3://captured/sentiment"),
        metrics=MetricsPublishing(enhanced=True, publish_frequency=Duration.seconds(10)),
    )


def _endpoint(stack: cdk.Stack, parts: Parts) -> None:
    endpoint = parts.endpoint(stack, deployment=DeploymentPolicy.linear(), tags={"team": "search"})
    alarms = alarms_on(
        stack,
        endpoint,
        "Rollback",
        new_fleet_only=True,
        error_rate=0.01,
        model_latency={"p99": Duration.millis(200)},
    )
    endpoint.roll_back_on(*alarms.alarms.values())
    endpoint.scale("primary", min_instances=2, max_instances=10).track_invocations(
        max_tps_per_instance=200, safety_factor=0.65
    ).track_concurrency(max_concurrency_per_instance=4).on_schedule(
        "morning", schedule=appscaling.Schedule.cron(hour="7", minute="30"), min_instances=8
    )
    alarms_on(
        stack,
        endpoint,
        model_latency={"p99": Duration.millis(200)},
        overhead_latency={"Average": Duration.millis(20)},
        error_rate=0.01,
    )
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
    endpoint.grant_invoke(caller)


def _keys(stack: cdk.Stack, parts: Parts) -> None:
    """Keys wherever one can be given, and buckets of the same app by URIs with tokens."""
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    bucket = s3.Bucket(
        stack, "Bucket", encryption_key=key, enforce_ssl=True, server_access_logs_prefix="access/"
    )
    written = f"s3://{bucket.bucket_name}/written"
    model = parts.serving(
        stack,
        data=ModelData.from_s3(bucket, "model.tar.gz"),
        image=ContainerImage.from_uri(
            f"{stack.account}.dkr.ecr.{stack.region}.{stack.url_suffix}/scorer:7"
        ),
    )
    variant = parts.variant(stack, model=model, core_dump=CoreDump(s3=f"{written}/cores", key=key))
    parts.endpoint(
        stack,
        configuration=parts.configuration(
            stack,
            variants=[variant],
            encryption_key=key,
            data_capture=DataCapture(s3=f"{written}/captured", key=key),
        ),
    )


def _pattern(
    stack: cdk.Stack, parts: Parts, id: str = "Sentiment", **given: Any
) -> LowLatencyEndpoint:
    return parts.pattern(
        stack,
        id,
        instance_type=InstanceType("ml.m5.12xlarge"),
        throughput=MeasuredThroughput(
            peak_tps=1000, tps_per_instance=200, safety_factor=0.65, rise_tps_per_minute=10
        ),
        **given,
    )


def _two_patterns(stack: cdk.Stack, parts: Parts) -> None:
    first = _pattern(stack, parts, "First")
    _pattern(stack, parts, "Second", network=first.network, private_link=first.private_link)


def _load_test_fleet(stack: cdk.Stack, parts: Parts) -> None:
    network = parts.network(stack)
    link = RuntimePrivateLink(stack, "Link", network=network)
    fleet = LoadTestFleet(stack, "Fleet", network=network, private_link=link, endpoint="Sentiment")
    fleet.output_commands()
    LoadTestFleet(
        stack,
        "Second",
        network=network,
        private_link=link,
        endpoint="ranker",
        interface_endpoints=fleet,
        results_bucket=fleet.results_bucket,
        cpu=256,
        memory_mib=512,
    )


WHOLE_STACKS: dict[str, Callable[[cdk.Stack, Parts], Any]] = {
    "network-by-zone-id": lambda stack, parts: parts.network(stack),
    "network-by-zone-name": lambda stack, parts: parts.network(
        stack,
        client_zones=ClientZones.of_names("us-east-1a", "us-east-1b"),
        flow_logs=ec2.FlowLogTrafficType.ALL,
        max_instances=100,
    ),
    "network-in-existing-vpc": lambda stack, parts: RuntimePrivateLink(
        stack, "Link", network=parts.network_in(stack)
    ),
    "private-link": _private_link,
    "private-link-fips": lambda stack, parts: RuntimePrivateLink(
        stack, "Link", network=parts.network(stack), fips=True
    ),
    "models": _models,
    "variants": _variants,
    "endpoint": _endpoint,
    "keys": _keys,
    "rolling-endpoint": lambda stack, parts: parts.endpoint(
        stack, deployment=DeploymentPolicy.rolling()
    ),
    "pattern": _pattern,
    "pattern-in-existing-vpc": lambda stack, parts: _pattern(
        stack, parts, network=parts.network_in(stack)
    ),
    "two-patterns": _two_patterns,
    "load-test-fleet": _load_test_fleet,
}


@pytest.fixture(scope="session", params=WHOLE_STACKS)
def whole_stack_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def fill() -> Callable[[cdk.Stack, str], None]:
    """Fill a stack with one of the whole stacks."""
    return lambda stack, name: WHOLE_STACKS[name](stack, Parts())
