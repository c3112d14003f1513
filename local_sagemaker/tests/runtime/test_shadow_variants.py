"""A shadow variant gets copies of requests; its answers, errors and delays reach no caller."""

from __future__ import annotations

import time
from functools import partial

import pytest
from hosting_site import Scaled, canary, rolling, taking
from signed_requests import refusal
from waiting import until

from local_sagemaker.model_servers import SimulatedModelServer

FAST = taking(0.001)
SLOW = taking(0.5, concurrency=1)
FAILING = SimulatedModelServer(failure_share=1.0, failure_status=500)


def shadow(here, server="candidate", **given):
    return {
        "VariantName": "candidate",
        "ModelName": here.model(server),
        "InstanceType": "ml.c7i.xlarge",
        "InitialInstanceCount": 1,
        **given,
    }


@pytest.fixture
def shadowed(site):
    """An endpoint whose candidate runs on this model server."""

    def make(candidate, *, variant=None, **given):
        here = site({"model": FAST, "candidate": candidate})
        name = here.endpoint(variant or {}, ShadowProductionVariants=[shadow(here, **given)])
        return here, name

    return make


def counted(here, name, metric="Invocations", variant="candidate", wait_for=0):
    """The metric's sum, once so many copies are counted: nobody waits for a copy."""
    return until(
        lambda: here.statistics(name, metric, "Sum", VariantName=variant).get("Sum", 0),
        lambda found: found >= wait_for,
    )


def test_with_equal_weights_every_request_is_copied_once(shadowed):
    here, name = shadowed(FAST)
    here.invoke_many(name, 12)
    assert counted(here, name, wait_for=12) == 12
    assert here.statistics(name, "Invocations", "Sum") == {"Sum": 12}
    assert counted(here, name, "InvocationsPerInstance") == 12


@pytest.mark.parametrize(
    ("production", "candidate", "least", "most"),
    [(1, 0, 0, 0), (1, 0.25, 30, 70), (4, 1, 30, 70), (1, 3, 200, 200)],
)
def test_the_shadows_weight_over_productions_is_the_share(
    shadowed, production, candidate, least, most
):
    here, name = shadowed(
        FAST, variant={"InitialVariantWeight": production}, InitialVariantWeight=candidate
    )
    here.invoke_many(name, 200, at_once=4)
    time.sleep(0.3)
    assert least <= counted(here, name, wait_for=least) <= most


def test_callers_wait_for_production_only(shadowed):
    here, name = shadowed(SLOW)
    here.invoke(name)
    began = time.perf_counter()
    for _ in range(5):
        assert here.invoke(name)["InvokedProductionVariant"] == "primary"
    assert time.perf_counter() - began < 0.5  # one of the shadow's answers alone
    assert counted(here, name, wait_for=1) >= 1
    latency = here.statistics(name, "ModelLatency", "Minimum", VariantName="candidate")
    assert latency["Minimum"] >= 500_000
    assert here.statistics(name, "ModelLatency", "Maximum")["Maximum"] < 400_000


def test_the_shadows_errors_are_its_own(shadowed):
    here, name = shadowed(FAILING)
    here.invoke_many(name, 6)
    assert counted(here, name, "InvocationModelErrors", wait_for=6) == 6
    assert counted(here, name, "Invocation5XXErrors") == 6
    assert counted(here, name, "InvocationModelErrors", variant="primary") == 0
    assert here.statistics(name, "Invocations", "Sum") == {"Sum": 6}


def test_streams_are_copied_too(shadowed):
    here, name = shadowed(FAST)
    answer = here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=name, Body=b'{"stream": 3}'
    )
    assert b"".join(event["PayloadPart"]["Bytes"] for event in answer["Body"])
    assert counted(here, name, wait_for=1) == 1


def test_describe_endpoint_shows_the_shadow_which_nobody_calls_by_its_name(shadowed):
    here, name = shadowed(FAST, InitialInstanceCount=2, InitialVariantWeight=0.5)
    _, message = refusal(here.invoke, name=name, TargetVariant="candidate")
    assert "Variant candidate of endpoint" in message
    assert here.invoke(name, TargetVariant="primary")["InvokedProductionVariant"] == "primary"
    found = here.described(name)
    assert [variant["VariantName"] for variant in found["ProductionVariants"]] == ["primary"]
    (candidate,) = found["ShadowProductionVariants"]
    assert candidate["VariantName"] == "candidate"
    assert (candidate["CurrentInstanceCount"], candidate["DesiredInstanceCount"]) == (2, 2)
    assert (candidate["CurrentWeight"], candidate["DesiredWeight"]) == (0.5, 0.5)


def test_a_shadow_that_does_not_start_fails_the_endpoint(site):
    here = site({"model": FAST, "candidate": SimulatedModelServer(cold_start=10_000)})
    name = here.endpoint(ShadowProductionVariants=[shadow(here)], wait=False)
    here.aws.advance(600)
    found = here.settled(name)
    assert found["EndpointStatus"] == "Failed"
    assert "candidate" in found["FailureReason"]


@pytest.mark.parametrize(
    ("production", "shadows", "words"),
    [
        ([{}], ["a", "b"], "ShadowProductionVariants"),
        ([{"VariantName": "a"}, {"VariantName": "b"}], ["c"], "ShadowProductionVariants"),
        ([{}], ["primary"], "unique"),
    ],
)
def test_more_than_one_of_either_and_a_name_twice_are_refused(site, production, shadows, words):
    here = site()
    variants = [shadow(here, "model", VariantName=each) for each in shadows]
    configure = partial(here.config, *production, ShadowProductionVariants=variants)
    assert words in refusal(configure)[1]


def test_the_shadow_scales_by_itself(shadowed):
    here, name = shadowed(FAST)
    Scaled(here, f"endpoint/{name}/variant/candidate").register(1, 4)
    here.scale(name, 3, "candidate")
    found = here.settled(name)
    assert found["ShadowProductionVariants"][0]["CurrentInstanceCount"] == 3
    assert found["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    here.invoke_many(name, 6)
    assert counted(here, name, wait_for=6) == 6
    assert counted(here, name, "InvocationsPerInstance") == pytest.approx(2)


@pytest.mark.parametrize(
    "policy", [{}, canary(wait=60), rolling(1, wait=0)], ids=["all at once", "canary", "rolling"]
)
def test_an_update_without_the_shadow_ends_the_copies(shadowed, policy):
    here, name = shadowed(FAST, variant={"InitialInstanceCount": 2})
    here.update(name, here.config({"InitialInstanceCount": 2}), **policy)
    for _ in range(4):
        here.aws.advance(60)
    assert not here.settled(name).get("ShadowProductionVariants")
    here.invoke_many(name, 5)
    time.sleep(0.2)
    assert counted(here, name) == 0


def test_an_update_brings_a_shadow_in(site):
    here = site({"model": FAST, "candidate": FAST})
    name = here.endpoint()
    here.update(name, here.config(ShadowProductionVariants=[shadow(here)]))
    here.settled(name)
    here.invoke_many(name, 3)
    assert counted(here, name, wait_for=3) == 3
