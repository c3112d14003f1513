"""An account whose answers are scripted; botocore checks each request and each answer.

`Stubber` validates the expected parameters against the service's model and refuses a call with
others; answers are validated too, so a recorded shape that AWS could not send fails the test.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.stub import Stubber

JOB_ARN = "arn:aws:sagemaker:us-east-1:123456789012:inference-recommendations-job/sentiment-1"
ROLE = "arn:aws:iam::123456789012:role/recommender"
SUBNETS = ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
GROUPS = ["sg-0123456789abcdef0"]
THEN = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
MADE = {"CreationTime": THEN, "LastModifiedTime": THEN}


@cache
def _session() -> boto3.Session:
    """One for all: each reads botocore's data anew."""
    return boto3.Session()


class Account:
    """Stubbed clients by service; use as a client factory."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._stubs: dict[str, Stubber] = {}

    def __call__(self, service: str) -> Any:
        if service not in self._clients:
            client = _session().client(
                service,
                region_name="us-east-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
            )
            self._clients[service] = client
            self._stubs[service] = Stubber(client)
            self._stubs[service].activate()
        return self._clients[service]

    def answers(
        self, service: str, operation: str, request: dict[str, Any], answer: dict[str, Any]
    ) -> None:
        """The next call must be this one, and gets this answer."""
        self(service)
        self._stubs[service].add_response(operation, answer, request)

    def refuses(self, service: str, operation: str, code: str, message: str = "no") -> None:
        """The next call is this one, and is refused."""
        self(service)
        self._stubs[service].add_client_error(operation, code, message)

    def all_asked(self) -> None:
        """Nothing scripted is left over."""
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()

    # --- what a deployed stack answers ---------------------------------------------------------
    def deployed(
        self, endpoint: str = "sentiment", model: str = "Model-1", vpc: bool = True
    ) -> None:
        """The endpoint, its configuration and its model."""
        arn = "arn:aws:sagemaker:us-east-1:123456789012:"
        self.answers(
            "sagemaker",
            "describe_endpoint",
            {"EndpointName": endpoint},
            {
                "EndpointName": endpoint,
                "EndpointArn": f"{arn}endpoint/{endpoint}",
                "EndpointConfigName": "Configuration-1",
                "EndpointStatus": "InService",
                **MADE,
            },
        )
        self.answers(
            "sagemaker",
            "describe_endpoint_config",
            {"EndpointConfigName": "Configuration-1"},
            {
                "EndpointConfigName": "Configuration-1",
                "CreationTime": THEN,
                "EndpointConfigArn": f"{arn}endpoint-config/Configuration-1",
                "ProductionVariants": [{"VariantName": "primary", "ModelName": model}],
            },
        )
        self.model(model, vpc=vpc)

    def model(self, name: str, *, vpc: bool = True) -> None:
        """A model, in a VPC or not."""
        network = {"VpcConfig": {"Subnets": SUBNETS, "SecurityGroupIds": GROUPS}} if vpc else {}
        self.answers(
            "sagemaker",
            "describe_model",
            {"ModelName": name},
            {
                "ModelName": name,
                "CreationTime": THEN,
                **network,
                "ModelArn": f"arn:aws:sagemaker:us-east-1:123456789012:model/{name}",
                "ExecutionRoleArn": "arn:aws:iam::123456789012:role/model",
            },
        )

    # --- what Inference Recommender answers ----------------------------------------------------
    def describes(
        self,
        name: str,
        status: str,
        *,
        results: list[dict[str, Any]] | None = None,
        job_type: str = "Advanced",
        reason: str = "",
    ) -> None:
        """One look at a job."""
        answer: dict[str, Any] = {
            "JobName": name,
            "JobType": job_type,
            "JobArn": JOB_ARN,
            "RoleArn": ROLE,
            "Status": status,
            "InputConfig": {"ModelName": "Model-1"},
            **MADE,
        }
        if job_type == "Advanced":
            threshold = {"Percentile": "P95", "ValueInMilliseconds": 200}
            answer["StoppingConditions"] = {"ModelLatencyThresholds": [threshold]}
        if results:
            answer["InferenceRecommendations"] = results
        if status == "COMPLETED":
            answer["CompletionTime"] = THEN
        if reason:
            answer["FailureReason"] = reason
        self.answers(
            "sagemaker", "describe_inference_recommendations_job", {"JobName": name}, answer
        )

    def steps(self, name: str, *statuses: str) -> None:
        """The tests of a job."""
        self.answers(
            "sagemaker",
            "list_inference_recommendations_job_steps",
            {"JobName": name},
            {"Steps": [{"StepType": "BENCHMARK", "JobName": name, "Status": s} for s in statuses]},
        )


def result(
    instance_type: str,
    *,
    latency: int,
    invocations: int,
    cost: float = 0.736,
    environment: dict[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One recommendation, in the shape of a recorded answer (SageMaker Python SDK's tests)."""
    parameters = [
        {"Key": name, "ValueType": "string", "Value": value}
        for name, value in (environment or {}).items()
    ]
    model = {"EnvironmentParameters": parameters} if parameters else {}
    return {
        "RecommendationId": f"sentiment-1/{instance_type}",
        "Metrics": {
            "CostPerHour": cost,
            "CostPerInference": cost / (invocations * 60),
            "MaxInvocations": invocations,
            "ModelLatency": latency,
            "CpuUtilization": 71.4,
            "MemoryUtilization": 22.5,
        },
        "EndpointConfiguration": {
            "EndpointName": "sm-epc-1",
            "VariantName": "AllTraffic",
            "InstanceType": instance_type,
            "InitialInstanceCount": 1,
        },
        "ModelConfiguration": {**model, **more},
    }
