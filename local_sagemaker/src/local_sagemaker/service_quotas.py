"""Service Quotas of SageMaker: how many instances of each type the account's endpoints may have.

The number is an option of the runtime, the same for each type, as AWS's own differ by type, Region and
account. What it allows, `check_quota` holds CreateEndpoint and UpdateEndpoint to. moto has the quotas of
VPCs.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .application import Caller, OwnService, PassOn
from .hosting import all_variants, hosting
from .protocols import ServiceError, service_model


def _quotas(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """ListServiceQuotas and ListAWSDefaultServiceQuotas: one quota for each instance type."""
    if request["ServiceCode"] != "sagemaker":
        raise PassOn
    types = service_model("sagemaker").shape_for("ProductionVariantInstanceType").enum
    return {"Quotas": [_quota(caller, instance_type) for instance_type in types]}


def _quota(caller: Caller, instance_type: str) -> dict[str, Any]:
    name = _name(instance_type)
    code = f"L-{zlib.crc32(name.encode()):08X}"  # AWS's are of this form, and in no list
    return {
        "ServiceCode": "sagemaker",
        "ServiceName": "Amazon SageMaker",
        "QuotaArn": f"arn:aws:servicequotas:{caller.region}:{caller.account}:sagemaker/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": float(caller.runtime.options.endpoint_instances),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


def _name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def check_quota(
    caller: Caller, endpoint: str, config: Mapping[str, Any], described: Mapping[str, Any]
) -> None:
    """Refuse a create or an update after which a type's instances would be more than its quota.

    Source of the words: aws/amazon-sagemaker-examples issue 307.
    """
    state, most = hosting(*caller.place), caller.runtime.options.endpoint_instances
    held: Counter[str] = Counter()
    former: Counter[str] = Counter()
    for name, record in list(state.endpoints.items()):
        counts = _instances(state.configs.get(record["EndpointConfigName"], {}), record)
        held += counts
        former += counts if name == endpoint else Counter()
    for instance_type, wanted in _instances(config, described).items():
        delta = wanted - former[instance_type]
        if delta > 0 and held[instance_type] + delta > most:
            raise ServiceError(
                f"The account-level service limit '{_name(instance_type)}' is {most} Instances, with "
                f"current utilization of {held[instance_type]} Instances and a request delta of "
                f"{delta} Instances. Please use AWS Service Quotas to request an increase for this "
                "quota. If AWS Service Quotas is not available, contact AWS support to request an "
                "increase for this quota.",
                "ResourceLimitExceeded",
            )


def _instances(config: Mapping[str, Any], described: Mapping[str, Any]) -> Counter[str]:
    """Count an endpoint's wanted instances by type; those of pools and serverless ones have none."""
    types = {each["VariantName"]: each.get("InstanceType") for each in all_variants(config)}
    counts: Counter[str] = Counter()
    for variant in all_variants(described):
        if instance_type := types.get(variant["VariantName"]):
            counts[instance_type] += int(variant.get("DesiredInstanceCount") or 0)
    return counts


SERVICE_QUOTAS = OwnService(
    "service-quotas", {"ListServiceQuotas": _quotas, "ListAWSDefaultServiceQuotas": _quotas}
)
