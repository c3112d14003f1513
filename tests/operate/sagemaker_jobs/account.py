"""An account that runs SageMaker jobs, and in which the shipped endpoint is deployed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.model import Shape
from botocore.validate import ParamValidator

from tests.fake_aws import ACCOUNT, REGION, FakeAws

ROLE = f"arn:aws:iam::{ACCOUNT}:role/recommender"
NETWORK = {
    "Subnets": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
    "SecurityGroupIds": ["sg-0123456789abcdef0"],
}
DEPLOYED = {"VariantName": "primary", "ModelName": "Model-1"}
SERVICE = boto3.Session().client("sagemaker", region_name=REGION).meta.service_model
CREATE = "sagemaker.CreateInferenceRecommendationsJob"
DESCRIBE = "sagemaker.DescribeInferenceRecommendationsJob"
OPTIMIZE = "sagemaker.CreateOptimizationJob"
DESCRIBE_OPTIMIZATION = "sagemaker.DescribeOptimizationJob"


def faults(operation: str, request: Any) -> str:
    """What botocore finds wrong, and beyond it: values outside an enumeration or a pattern."""
    shape = SERVICE.operation_model(operation).input_shape
    report = ParamValidator().validate(request, shape).generate_report()
    return "\n".join(filter(None, [report, *_outside(request, shape, "")]))


def _outside(value: Any, shape: Shape, where: str) -> list[str]:
    """botocore leaves enumerations, patterns and most maxima to the service."""
    most = shape.metadata.get("max", 2**31 - 1)
    if shape.type_name == "structure":
        return [
            fault
            for name, member in value.items()
            for fault in _outside(member, shape.members[name], f"{where}.{name}")
        ]
    if shape.type_name == "list":
        return [f"{where}: {len(value)} of at most {most}"] * (len(value) > most) + [
            fault
            for index, item in enumerate(value)
            for fault in _outside(item, shape.member, f"{where}[{index}]")
        ]
    if shape.type_name == "string":
        pattern = shape.metadata.get("pattern", "")
        bad = (
            (shape.enum and value not in shape.enum)
            or len(value) > most
            or (pattern and "\\p" not in pattern and not re.fullmatch(pattern, value))
        )
        return [f"{where}: {value}"] * bool(bad)
    return [f"{where}: {value}"] * (shape.type_name == "integer" and value > most)


def _accepted(operation: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """An operation's answer to a request without faults."""

    def answer(request: Mapping[str, Any]) -> dict[str, Any]:
        assert faults(operation, request) == ""
        return {}

    return answer


class JobAccount(FakeAws):
    """Each description of a job that a test states is the answer to one request."""

    def __init__(self) -> None:
        super().__init__(
            {
                "sagemaker.DescribeEndpoint": {"EndpointConfigName": "Configuration-1"},
                "sagemaker.DescribeEndpointConfig": {"ProductionVariants": [DEPLOYED]},
                "sagemaker.DescribeModel": {"VpcConfig": NETWORK},
                CREATE: _accepted("CreateInferenceRecommendationsJob"),
                DESCRIBE: [],
                OPTIMIZE: _accepted("CreateOptimizationJob"),
                DESCRIBE_OPTIMIZATION: [],
            }
        )

    def describes(self, status: str, *results: dict[str, Any], reason: str = "") -> None:
        """Answer one description of a recommendation job."""
        answer = {"JobType": "Advanced", "Status": status, "FailureReason": reason}
        if results:
            answer["InferenceRecommendations"] = list(results)
        self.answers[DESCRIBE].append(lambda request: {"JobName": request["JobName"], **answer})


#: Of a model, in a result.
THREADS = {
    "EnvironmentParameters": [{"Key": "OMP_NUM_THREADS", "ValueType": "string", "Value": "8"}]
}


def result(
    instance_type: str, *, latency: int, invocations: int, cost: float = 0.736, **model: Any
) -> dict[str, Any]:
    """One recommendation, in the shape of a recorded answer (SageMaker Python SDK's tests)."""
    return {
        "RecommendationId": f"sentiment-1/{instance_type}",
        "Metrics": {"CostPerHour": cost, "MaxInvocations": invocations, "ModelLatency": latency},
        "EndpointConfiguration": {
            "EndpointName": "sm-epc-1",
            "VariantName": "AllTraffic",
            "InstanceType": instance_type,
            "InitialInstanceCount": 1,
        },
        "ModelConfiguration": model,
    }
