"""Service Quotas of SageMaker: what is listed is what endpoints are held to."""

from __future__ import annotations

import pytest
from hosting_site import Site
from signed_requests import refusal

from local_sagemaker import LocalAws, RuntimeOptions

TYPE = "ml.m5.xlarge"


@pytest.mark.parametrize("operation", ["list_service_quotas", "list_aws_default_service_quotas"])
def test_each_instance_type_has_a_quota(operation):
    with LocalAws.in_process(runtime=RuntimeOptions(endpoint_instances=7)) as aws:
        client = aws.client("service-quotas")
        first = getattr(client, operation)(ServiceCode="sagemaker")
        assert len(first["Quotas"]) == 100
        pages = client.get_paginator(operation).paginate(ServiceCode="sagemaker")
        quotas = {each["QuotaName"]: each for page in pages for each in page["Quotas"]}
        model = aws.client("sagemaker").meta.service_model
        types = model.shape_for("ProductionVariantInstanceType").enum
        assert quotas.keys() == {f"{name} for endpoint usage" for name in types}
        assert {each["Value"] for each in quotas.values()} == {7.0}
        assert len({each["QuotaCode"] for each in quotas.values()}) == len(types)


def test_quotas_of_other_services_are_moto_s(aws):
    listed = aws.client("service-quotas").list_aws_default_service_quotas(ServiceCode="vpc")
    assert "VPCs per Region" in [each["QuotaName"] for each in listed["Quotas"]]


def test_a_create_and_an_update_beyond_the_quota_are_refused():
    with LocalAws.in_process(runtime=RuntimeOptions(endpoint_instances=5)) as aws:
        site = Site(aws)
        three, two = (
            site.config({"InstanceType": TYPE, "InitialInstanceCount": count}) for count in (3, 2)
        )
        other = site.config({"InstanceType": "ml.c5.xlarge", "InitialInstanceCount": 5})
        sagemaker = aws.client("sagemaker")
        sagemaker.create_endpoint(EndpointName="a", EndpointConfigName=three)
        code, message = refusal(
            sagemaker.create_endpoint, EndpointName="b", EndpointConfigName=three
        )
        assert code == "ResourceLimitExceeded"
        assert message.startswith(
            f"The account-level service limit '{TYPE} for endpoint usage' is 5 Instances, with "
            "current utilization of 3 Instances and a request delta of 3 Instances."
        )
        sagemaker.create_endpoint(EndpointName="b", EndpointConfigName=two)
        sagemaker.create_endpoint(EndpointName="c", EndpointConfigName=other)
        code, message = refusal(
            sagemaker.update_endpoint, EndpointName="b", EndpointConfigName=three
        )
        assert (code, "a request delta of 1 Instances" in message) == (
            "ResourceLimitExceeded",
            True,
        )
        sagemaker.update_endpoint(EndpointName="a", EndpointConfigName=two)
        sagemaker.update_endpoint(EndpointName="b", EndpointConfigName=three)
