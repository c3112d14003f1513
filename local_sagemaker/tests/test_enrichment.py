"""The two switches of an account's metrics: resource tags on telemetry, then OTel enrichment."""

from __future__ import annotations

from typing import Any

import pytest
from signed_requests import refusal

SAGEMAKER = [{"Namespace": "AWS/SageMaker"}]


@pytest.fixture
def admin(cloudwatch, aws) -> Any:
    return aws.client("observabilityadmin")


def test_enrichment_is_refused_before_resource_tags_are_on(cloudwatch, admin):
    code, message = refusal(cloudwatch.start_otel_enrichment)
    assert code == "ValidationError"
    assert "StartTelemetryEnrichment" in message
    assert cloudwatch.get_otel_enrichment()["Status"] == "Stopped"

    assert admin.start_telemetry_enrichment()["Status"] == "Running"
    cloudwatch.start_otel_enrichment()
    assert cloudwatch.get_otel_enrichment()["Status"] == "Running"


def test_resource_tags_are_started_looked_at_and_stopped(admin):
    assert admin.get_telemetry_enrichment_status()["Status"] == "Stopped"
    view = admin.start_telemetry_enrichment()["AwsResourceExplorerManagedViewArn"]
    found = admin.get_telemetry_enrichment_status()
    assert (found["Status"], found["AwsResourceExplorerManagedViewArn"]) == ("Running", view)
    assert admin.start_telemetry_enrichment()["Status"] == "Running"
    assert admin.stop_telemetry_enrichment()["Status"] == "Stopped"
    assert admin.get_telemetry_enrichment_status()["Status"] == "Stopped"


def test_each_region_has_its_own_switch(cloudwatch, admin, aws):
    admin.start_telemetry_enrichment()
    elsewhere = aws.client("observabilityadmin", region="eu-west-1")
    assert elsewhere.get_telemetry_enrichment_status()["Status"] == "Stopped"
    _, message = refusal(aws.client("cloudwatch", region="eu-west-1").start_otel_enrichment)
    assert "StartTelemetryEnrichment" in message


def test_filters_are_stored_by_the_start_only(cloudwatch, admin):
    """ "Calling StartOTelEnrichment where enrichment is already running has no effect"."""
    admin.start_telemetry_enrichment()
    cloudwatch.start_otel_enrichment(IncludeFilters=SAGEMAKER)
    before = cloudwatch.get_otel_enrichment()
    cloudwatch.start_otel_enrichment()
    after = cloudwatch.get_otel_enrichment()
    assert before["IncludeFilters"] == after["IncludeFilters"] == SAGEMAKER
    assert before["UpdatedAt"] == after["UpdatedAt"]


def test_a_reset_forgets_both(cloudwatch, admin, aws):
    admin.start_telemetry_enrichment()
    cloudwatch.start_otel_enrichment()
    aws.reset()
    assert admin.get_telemetry_enrichment_status()["Status"] == "Stopped"
    assert cloudwatch.get_otel_enrichment()["Status"] == "Stopped"


def test_what_else_the_service_does_is_refused_by_name(admin):
    _, message = refusal(admin.list_telemetry_rules)
    assert "observabilityadmin:ListTelemetryRules is not emulated" in message
