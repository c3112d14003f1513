"""Rules about how things fit together; limits of a single property stand in :mod:`.limits`."""

from __future__ import annotations

from ..errors import rule
from ..report.numbers import readable
from .limit_kinds import Range
from .limits import API, GUIDE

# --- 1 network ---------------------------------------------------------------------------------
ZONE_NAMED_TWICE = rule("LLE107", "a client zone is named twice", fix="Name each zone once.")
ZONE_WITHOUT_SUBNET = rule(
    "LLE151",
    "a client zone has no subnet in the VPC",
    fix="Add a subnet in that zone, or name only zones that have a subnet.",
    source=GUIDE + "interface-vpc-endpoint.html",
)
ZONES_UNKNOWN_AT_SYNTH = rule(
    "LLE152",
    "client zones cannot be matched to the VPC's subnets at synth",
    fix="Pass subnets={zone: subnet, ...}. Zone IDs always need it. Zone names need it "
    "unless the VPC is looked up.",
    source="/ram/latest/userguide/working-with-az-ids.html",
)
SUBNETS_OF_OTHER_ZONES = rule(
    "LLE153",
    "the given subnets do not match the client zones",
    fix="Give exactly one subnet in each client zone.",
)
ZONES_OR_NETWORK = rule(
    "LLE154",
    "exactly one of client_zones and network must be given",
    fix="Pass client_zones= (with vpc= for an existing VPC) or network=.",
)
LOOKUP_NEEDS_ENVIRONMENT = rule(
    "LLE155",
    "a VPC lookup needs a known account and region",
    fix="Set account and region in the settings, or run the CLI with credentials.",
    source="/cdk/v2/guide/context.html",
)
SUBNET_NOT_IN_VPC = rule(
    "LLE156",
    "a subnet is not in the VPC",
    fix="Name a subnet of vpc_id. If the subnet is new, run `cdk context --clear` first.",
    source="/cdk/v2/guide/context.html",
)
FLEETS_SHARE_SUBNETS = rule(
    "LLE157",
    "the subnets are too small for the fleets of all their endpoints",
    fix="Use a new network with ZoneAlignedNetwork(max_instances=...) or "
    "LowLatencyEndpoint(network_max_instances=...), larger subnets in an existing "
    "VPC, or lower maximums.",
    source=GUIDE + "host-vpc.html",
)
NETWORK_FROM_TWO = rule(
    "LLE158",
    "the network or its subnets are given twice",
    fix="Pass network= alone, or vpc= with optional subnets= or subnet_selection=. For a "
    "new VPC, pass none, but network_max_instances= if other endpoints will share it.",
)
NOT_A_CLIENT_ZONE = rule(
    "LLE362",
    "the network has no subnet in the zone",
    fix="Name one of the network's client zones, in the form (ID or name) given to the network.",
)
SUBNET_OF_TWO_ZONES = rule(
    "LLE159",
    "one subnet is given for two client zones",
    fix="Give each client zone its own subnet.",
    source="/vpc/latest/userguide/configure-subnets.html",
)

# --- 2 PrivateLink -----------------------------------------------------------------------------
SECOND_PRIVATE_DNS = rule(
    "LLE211",
    "the VPC already has an interface endpoint with private DNS for this service",
    fix="Pass one RuntimePrivateLink as private_link=, without private_dns=, to each endpoint, or "
    "adopt it with RuntimePrivateLink.from_interface_endpoint(...). Set sagemaker_api=True on one "
    'link only. AWS\'s message: "conflicting DNS domain".',
    source="/vpc/latest/privatelink/create-interface-endpoint.html",
)
PRIVATE_DNS_NEEDS_VPC_DNS = rule(
    "LLE212",
    "private DNS needs DNS support and DNS hostnames on the VPC",
    fix="Set the VPC's enable_dns_support and enable_dns_hostnames to True.",
    source="/vpc/latest/privatelink/create-interface-endpoint.html",
)
FIPS_WITH_POLICY = rule(
    "LLE213",
    "the FIPS runtime endpoint supports no endpoint policy for InvokeEndpoint",
    fix="Leave endpoint_policy out, and limit the callers' IAM policies.",
    source=GUIDE + "interface-vpc-endpoint.html",
)
HOSTED_ZONE_IN_OWN_VPC = rule(
    "LLE214",
    "the private hosted zone lists the interface endpoint's own VPC",
    fix="Remove that VPC.",
    source="/vpc/latest/privatelink/manage-dns-names.html",
)
HOSTED_ZONE_NEEDS_DNS_NAME = rule(
    "LLE215",
    "an adopted interface endpoint has no DNS name known at synth",
    fix="Pass its regional_dns_name and hosted_zone_id from the VPC console.",
)
LINK_OF_OTHER_VPC = rule(
    "LLE216",
    "the network and the private link are in different VPCs",
    fix="Pass the private link's network, or another network in the same VPC.",
    source="/vpc/latest/privatelink/create-interface-endpoint.html",
)
NARROW_WITHOUT_POLICY = rule(
    "LLE218",
    "narrow_policy is given without an endpoint policy",
    fix="Leave narrow_policy out: endpoint_policy=False and fips=True create no policy.",
    source=GUIDE + "interface-vpc-endpoint.html",
)
NO_NAME_WITHOUT_PRIVATE_DNS = rule(
    "LLE219",
    "an adopted interface endpoint without private DNS has no name known at synth",
    fix="Pass its regional_dns_name from the VPC console.",
    source="/vpc/latest/privatelink/privatelink-access-aws-services.html",
)
API_NEEDS_PRIVATE_DNS = rule(
    "LLE220",
    "sagemaker_api needs private DNS",
    fix="Leave sagemaker_api or private_dns=False out, or make your own "
    "ec2.InterfaceVpcEndpoint and give its name to the tools.",
    source="/vpc/latest/privatelink/manage-dns-names.html",
)
LINK_HAS_ITS_OWN_DNS = rule(
    "LLE221",
    "private_dns is given together with a private link",
    fix="Leave private_dns= out: the RuntimePrivateLink has its own, which is stated where it is made.",
)
OTHER_REGIONAL_NAME = rule(
    "LLE363",
    "the name is not the interface endpoint's regional name",
    fix="Pass the first DNS name that the VPC console shows. Set fips= as the interface endpoint "
    "has it.",
    source="/vpc/latest/privatelink/privatelink-access-aws-services.html",
)
ENDPOINTS_ARE_THE_OWNERS = rule(
    "LLE223",
    "only the owner of a shared VPC makes VPC endpoints in it",
    fix="Let the owner make it, and adopt it by its ID and that of its security group.",
    source="/vpc/latest/userguide/vpc-share-limitations.html",
)
GUESTS_NEED_POLICY = rule(
    "LLE225",
    "accounts or an organization are let in without an endpoint policy",
    fix="Leave accounts and organization out: without a policy everybody is let in.",
    source="/vpc/latest/privatelink/vpc-endpoints-access.html",
)
HOSTED_ZONE_OF_OTHER_ACCOUNT = rule(
    "LLE222",
    "CloudFormation cannot associate a hosted zone with another account's VPC",
    fix="Leave that VPC out. Authorize it by hand (CreateVPCAssociationAuthorization "
    "here, AssociateVPCWithHostedZone there), share the zone with Route 53 Profiles, "
    "or give those callers the zonal names.",
    source="/Route53/latest/DeveloperGuide/"
    "hosted-zone-private-associate-vpcs-different-accounts.html",
)

# --- 3 model -----------------------------------------------------------------------------------
HOSTNAMES_ALL_OR_NONE = rule(
    "LLE321",
    "some containers have a hostname and some have none",
    fix="Give all containers of the pipeline a hostname, or none.",
    source=API + "ContainerDefinition.html",
)
HOSTNAME_TWICE = rule(
    "LLE322",
    "two containers have the same hostname",
    fix="Give each container its own hostname.",
    source=API + "ContainerDefinition.html",
)
DIRECT_NEEDS_HOSTNAMES = rule(
    "LLE323",
    "containers that are invoked directly need hostnames",
    fix="Give each container a hostname. Callers name it in TargetContainerHostname.",
    source=GUIDE + "multi-container-direct.html",
)
MODE_NEEDS_CONTAINERS = rule(
    "LLE324",
    "an inference mode needs several containers",
    fix="Leave inference_mode out, or add containers.",
    source=API + "InferenceExecutionConfig.html",
)
PREFIX_ENDS_WITH_SLASH = rule(
    "LLE325",
    "an uncompressed model's S3 prefix does not end with a slash",
    fix="End the prefix with /.",
    source=API + "S3ModelDataSource.html",
)
EULA_OF_PREFIX = rule(
    "LLE318",
    "accept_eula is given with data that takes no license agreement",
    fix="Leave it out. It accepts the licence of one model's data in S3.",
    source="/sagemaker/latest/APIReference/API_S3ModelDataSource.html",
)
MULTI_MODEL_DATA = rule(
    "LLE326",
    "a multi-model container needs compressed archives under one S3 prefix",
    fix="Name the prefix, such as s3://my-bucket/models/, with one .tar.gz for each model.",
    source=GUIDE + "create-multi-model-endpoint.html",
)
IMAGE_OR_PACKAGE = rule(
    "LLE370",
    "a container has no image and no model package",
    fix="Give an image or a model package.",
    source=API + "ContainerDefinition.html",
)
PACKAGE_IS_SINGLE_MODEL = rule(
    "LLE371",
    "a multi-model container cannot use a model package",
    fix="Leave multi_model or model_package out.",
    source=GUIDE + "create-multi-model-endpoint.html",
)
CACHE_OF_MULTI_MODEL = rule(
    "LLE372",
    "only multi-model containers have a cache of models",
    fix="Leave model_cache out, or turn multi_model on.",
    source=API + "MultiModelConfig.html",
)
ASSET_IS_ARCHIVE = rule(
    "LLE327",
    "a model data asset is not one .tar.gz file",
    fix="Pack the model: tar czf model.tar.gz -C model .",
    source=GUIDE + "inference-pipeline-batch.html",
)
IMAGE_REGION = rule(
    "LLE328",
    "no Deep Learning Container account is known for the region",
    fix="Pass account=, or use ContainerImage.from_uri(...).",
    source="https://aws.github.io/deep-learning-containers/reference/available_images/",
)
ARCHIVE_NAME = rule(
    "LLE329",
    "model data in S3 is neither an object nor a prefix that ends with /",
    fix="Name the object (model.tar.gz), or end the prefix with /.",
    source=API + "S3ModelDataSource.html",
)

# --- 4 variants and endpoint configuration -----------------------------------------------------
VARIANT_NAMED_TWICE = rule(
    "LLE421",
    "two production variants have the same name",
    fix="Rename one variant.",
    source=API + "CreateEndpointConfig.html",
)
TYPE_XOR_POOLS = rule(
    "LLE422",
    "a variant needs either an instance type or instance pools",
    fix="Give exactly one of the two.",
    source=GUIDE + "realtime-endpoints-heterogeneous.html",
)
PREFIX_SETTINGS = rule(
    "LLE423",
    "PREFIX_AWARE, and only it, needs a prefix length and a concurrency threshold",
    fix="Use RoutingStrategy.prefix_aware(prefix_length=..., concurrency_threshold=...).",
    source=API + "ProductionVariantRoutingConfig.html",
)
KMS_WITH_LOCAL_STORAGE = rule(
    "LLE424",
    "a KMS key is set for an instance type with local storage",
    fix="Leave the key out (local NVMe is encrypted in hardware), choose another type, or "
    "pass kms_key_with_local_storage=True. AWS's pages disagree: the call fails, or "
    "the key does not encrypt the local storage.",
    source="/AWSCloudFormation/latest/TemplateReference/aws-resource-sagemaker-endpointconfig.html",
)
POOL_TYPE_TWICE = rule(
    "LLE425",
    "two instance pools have the same instance type or priority",
    fix="Give each pool its own instance type and priority.",
    source=GUIDE + "realtime-endpoints-heterogeneous.html",
)
ALL_WEIGHTS_ZERO = rule(
    "LLE426",
    "no production variant would receive traffic",
    fix="Give at least one variant a weight above zero.",
    source=GUIDE + "model-ab-testing.html",
)

MODEL_WITHOUT_CONTAINERS = rule(
    "LLE436",
    "model options are set on a variant that has no containers",
    fix="Add containers to the variant, or remove model: the variant serves the first variant's "
    "model.",
)
ONE_VARIANT_SIMULATED = rule(
    "LLE438",
    "the simulation supports only one production variant",
    fix="Simulate a copy of the settings without variants. Set throughput.peak_tps to one "
    "variant's share (see `low-latency plan`). A shadow may stay.",
)
SHADOW_OF_ONE_VARIANT = rule(
    "LLE431",
    "a shadow variant needs exactly one production variant",
    fix="Keep one production variant, or leave the shadow out.",
    source=API + "CreateEndpointConfig.html",
)
COMPONENTS_NEED_A_HOST = rule(
    "LLE445",
    "the variant does not host inference components",
    fix="Give it ProductionVariant(model=ComponentHost(...)).",
    source=GUIDE + "realtime-endpoints-deploy-models.html",
)
COPIES_DO_NOT_FIT = rule(
    "LLE446",
    "the copies of an inference component do not fit onto the instances",
    fix="Request less per copy, use a larger instance type, or raise the ComponentHost's "
    "max_instances.",
    source=API + "InferenceComponentComputeResourceRequirements.html",
)
MORE_COPIES_THAN_MAXIMUM = rule(
    "LLE451",
    "the first copies are more than scaling makes",
    fix="Start fewer copies, or raise max_copies.",
    source="/autoscaling/application/userguide/step-scaling-policy-overview.html",
)
COMPONENTS_ARE_BY_THEMSELVES = rule(
    "LLE447",
    "a variant with inference components has no scaling or metrics of its own",
    fix="Use component.scale(...) and component.metric(...). SageMaker scales the instances "
    "within ComponentHost(min_instances=, max_instances=).",
    source=GUIDE + "endpoint-auto-scaling.html",
)
ONE_COMPONENT_HOST = rule(
    "LLE448",
    "this library does not offer such a variant of a ComponentHost",
    fix="Use one variant with a ComponentHost and an instance_type, or give every variant a "
    "model. This library counts how many copies fit onto one instance type, so a ComponentHost "
    "takes no instance pools, which SageMaker would take; and no shadow variant.",
    source=GUIDE + "realtime-endpoints-heterogeneous.html",
)
CONSOLIDATION_IS_OFF = rule(
    "LLE454",
    "a cooldown or a step of consolidation is given, but nothing consolidates",
    fix="Pass scale_in='CONSOLIDATION', or leave both out.",
    source=API + "ProductionVariantManagedInstanceScalingScaleInPolicy.html",
)

# --- 5 endpoint and deployments ----------------------------------------------------------------
EXECUTION_TIME_TOO_SHORT = rule(
    "LLE521",
    "maximum_execution is shorter than the deployment's waits",
    fix="Raise maximum_execution, or shorten the waits.",
    source=API + "BlueGreenUpdatePolicy.html",
)
ROLLING_NEEDS_ONE_VARIANT = rule(
    "LLE522",
    "a rolling update supports only one production variant",
    fix="Use canary, linear or all_at_once, or one variant.",
    source=GUIDE + "deployment-guardrails-exclusions.html",
)
COUNTS_OF_A_SCALED_FLEET = rule(
    "LLE512",
    "an update would reset a scaled variant to its initial instance count",
    fix="Leave keep_counts (keep_instance_counts) out, or turn scaling off.",
    source=GUIDE + "endpoint-scaling-update.html",
)
NAME_OR_ARN = rule(
    "LLE514",
    "an imported endpoint needs its name or its ARN",
    fix="Pass endpoint_name or endpoint_arn.",
)
INF1_HAS_NO_GUARDRAILS = rule(
    "LLE523",
    "Inf1 instances are excluded from deployment guardrails",
    fix="Deploy with all_at_once and without rollback_on_alarms, as SageMaker does anyway, or move to "
    "Inf2.",
    source=GUIDE + "deployment-guardrails-exclusions.html",
)

# --- 6 scaling ---------------------------------------------------------------------------------
MIN_ABOVE_MAX = rule(
    "LLE621",
    "the minimum number of instances is above the maximum",
    fix="Lower the minimum or raise the maximum.",
    source="/autoscaling/application/APIReference/API_RegisterScalableTarget.html",
)
UNKNOWN_VARIANT = rule(
    "LLE622",
    "the endpoint configuration has no such variant",
    fix="Name a variant of the endpoint configuration.",
)
THROUGHPUT_OR_TARGET = rule(
    "LLE633",
    "tracking invocations needs the measured throughput or a target",
    fix="Give max_tps_per_instance from a load test, or target_invocations_per_instance.",
)
VARIANTS_NOT_KNOWN = rule(
    "LLE631",
    "the variants of an imported endpoint are not known",
    fix="Use Endpoint.from_endpoint_attributes(..., "
    'variants=[VariantAttributes(name="AllTraffic")]). For one metric, use '
    'endpoint.variant("AllTraffic").',
)
VARIANT_SCALED_TWICE = rule(
    "LLE623",
    "the variant is already a scalable target",
    fix="Add policies to the object that endpoint.scale(...) returned.",
    source="/autoscaling/application/APIReference/API_RegisterScalableTarget.html",
)
BURSTABLE = rule(
    "LLE624",
    "SageMaker does not scale burstable instance types",
    fix="Choose a type outside ml.t2.",
    source=GUIDE + "endpoint-auto-scaling-add-console.html",
)
INITIAL_OUTSIDE_RANGE = rule(
    "LLE625",
    "the initial instance count is outside the scaling range",
    fix="Choose a count from the minimum to the maximum.",
    source="/autoscaling/application/APIReference/API_RegisterScalableTarget.html",
)
POLICY_NAMED_TWICE = rule(
    "LLE626",
    "the variant already has a scaling policy or schedule with this name",
    fix="Use another name.",
)
CAPACITY_CHANGE = rule(
    "LLE627",
    "a scheduled action sets no minimum and no maximum",
    fix="Give a minimum, a maximum or both.",
    source="/autoscaling/application/APIReference/API_ScheduledAction.html",
)
SCALING_STEPS = rule(
    "LLE628",
    "a step scaling policy has no steps",
    fix="Give at least one ScalingStep.",
    source="/autoscaling/application/APIReference/API_StepScalingPolicyConfiguration.html",
)
SCALING_IS_OFF = rule(
    "LLE629",
    "scaling is off, but scaling options are given",
    fix="Turn scaling on, or leave the scaling target and the cooldowns out.",
)

# --- 7 metrics and alarms ----------------------------------------------------------------------
DATAPOINTS_ABOVE_PERIODS = rule(
    "LLE721",
    "datapoints_to_alarm is above evaluation_periods",
    fix="Lower datapoints_to_alarm or raise evaluation_periods.",
    source="/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
)
ALARM_WINDOW = rule(
    "LLE737",
    "an alarm looks back further than CloudWatch allows",
    fix="Lower evaluation_periods or the period.",
    source="/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
)


def check_alarm_window(periods: int, datapoints: int, seconds: float, where: str = "") -> None:
    """So many datapoints of so many periods."""
    if datapoints > periods:
        got, allowed = f"{datapoints} of {periods}", f"at most {periods}"
        raise DATAPOINTS_ABOVE_PERIODS.error(got=got, allowed=allowed, where=where)
    most = 86_400 if seconds < 3600 else 604_800
    if periods * seconds > most:
        got = f"{periods} x {readable(seconds)} seconds"
        allowed = f"at most {most:,} seconds in all"
        raise ALARM_WINDOW.error(got=got, allowed=allowed, where=where)


METRIC_PERIOD = rule(
    "LLE366",
    "CloudWatch does not support this metric period",
    fix="Give whole minutes, or 1, 5, 10 or 30 seconds for high-resolution metrics.",
    source="/AmazonCloudWatch/latest/APIReference/API_MetricStat.html",
)
METRIC_NOT_PUBLISHED = rule(
    "LLE722",
    "this endpoint does not publish the metric",
    fix="Use a metric and dimensions of this kind of endpoint.",
    source=GUIDE + "monitoring-cloudwatch.html",
)
NEW_FLEET_NOT_KNOWN = rule(
    "LLE728",
    "the configuration of an imported endpoint is not known",
    fix="Use Endpoint.from_endpoint_attributes(..., endpoint_config_name=...), or watch the "
    "whole endpoint.",
)
ZONES_NOT_KNOWN = rule(
    "LLE729",
    "the zones or the instance type of a variant are not known",
    fix="Set network and instance_types of the VariantAttributes, or leave zone_imbalance out.",
)
SEVERITY_STATISTICS = rule(
    "LLE723",
    "thresholds mix two forms",
    fix='Write {"p99": Duration}, or {"Warning": {"p99": Duration}, "Critical": {...}}.',
)
SCALED_VARIANTS_ONLY = rule(
    "LLE724",
    "capacity_at_maximum needs a scaled variant",
    fix="Scale the variant before you create its alarms, or leave capacity_at_maximum out.",
)
NO_SHADOW = rule(
    "LLE734",
    "the endpoint has no shadow variant",
    fix="Add one with EndpointConfiguration(shadow=...), or leave these alarms out.",
)
LATENCY_RATIO = Range(
    rule(
        "LLE735",
        "a latency ratio is out of range",
        fix="Give the shadow's latency divided by production's, such as 1.2.",
    ),
    "the latency ratio",
    0.1,
    100,
    "",
    False,
)
PERCENT_OF_ALL = Range(
    rule(
        "LLE725",
        "a utilization threshold is out of range",
        fix="Give a percentage of all vCPUs, GPUs, memory or disk.",
    ),
    "the utilization threshold",
    1,
    100,
    "percent",
    False,
)
OBJECTIVE = Range(
    rule(
        "LLE726",
        "an objective is out of range",
        fix="Give the share of requests, or of periods, that must be fast, such as 0.99.",
    ),
    "the objective",
    0.95,
    0.99999,
    "",
    False,
)
NOTHING_TO_MEET = rule(
    "LLE739",
    "a service level objective has no threshold or period to measure by",
    fix="Give alarms.model_latency a threshold, or the endpoint a latency target, and keep "
    "alarms.period at 15 minutes or less. Or leave service_level_objective out.",
    source="/applicationsignals/latest/APIReference/API_ServiceLevelIndicatorMetricConfig.html",
)
LONGEST_OBJECTIVE_PERIOD_SECONDS = 900  # PeriodSeconds of the page above: 60 to 900

# Regions outside the partitions aws and aws-us-gov. Application Signals' API takes no ARN of them:
# "arn:(aws|aws-us-gov):application-signals:...", botocore 1.44.5 and API reference,
# ServiceLevelObjectiveSummary, read 2026-11-28. CloudFormation's schemas have the resource type in
# every Region that cfn-lint 1.58.0 knows, these too, which does not say that the service is there.
_REGIONS_WITHOUT_OBJECTIVES = ("cn-", "us-iso", "eu-isoe-", "eusc-")


def has_objectives(region: str) -> bool:
    """Whether Application Signals may be in a Region, as far as AWS says; a token may be any."""
    return not region.startswith(_REGIONS_WITHOUT_OBJECTIVES)


ZONE_IMBALANCE = Range(
    rule(
        "LLE727",
        "a zone imbalance is out of range",
        fix="Give the busiest zone's share divided by an even share, such as 1.5.",
    ),
    "the zone imbalance",
    1.01,
    16,
    "",
    False,
)

# --- 8 arguments -------------------------------------------------------------------------------
ARGUMENT_KIND = rule(
    "LLE807",
    "an argument has the wrong type",
    fix="Pass a value of an allowed kind; the error has an example.",
)
UNKNOWN_ARGUMENT = rule(
    "LLE811",
    "no argument has this name",
    fix="Use an allowed name, such as endpoint_name of EndpointOptions, not name.",
)
SCHEDULE_BESIDE_PEAKS = rule(
    "LLE646",
    "a schedule is stated beside peaks at set times, from which one follows",
    fix="Remove scaling.schedule, or state it without throughput.peaks.",
)
ONE_KIND_OF_RISE = rule(
    "LLE609", "from_tps and rise_tps_per_minute are both given", fix="Remove one of the two."
)

# --- 9 options that depend on one another ------------------------------------------------------
