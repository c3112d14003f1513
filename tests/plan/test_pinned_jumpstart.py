"""JumpStart's models in a lock file: nothing but what was pinned comes out of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.pinned_jumpstart import (
    JumpStartServing,
    PinnedJumpStartModel,
    bucket_url,
    jumpstart_document,
    jumpstart_models_of,
)
from low_latency_endpoint.plan.pinned_model import digest_of

DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.29.0-cu124"
PINNED = PinnedJumpStartModel(
    model="acme-tiny",
    version="1.0.0",
    region="us-east-1",
    eula="terms/acme.txt",
    servings=(
        JumpStartServing(
            instance_types=("ml.g5.xlarge",),
            image=DLC,
            artifact="acme/tiny/",
            environment={"A": "1"},
        ),
        JumpStartServing(
            instance_types=("ml.inf2.xlarge",), image=DLC, artifact="acme/neuron/", environment={}
        ),
    ),
)


def document() -> dict[str, Any]:
    return copy.deepcopy({"version": 1, "models": {}, "jumpstart": jumpstart_document([PINNED])})


def code_of(stated: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        jumpstart_models_of(stated, "models.lock.yaml")
    return caught.value.code


def test_what_was_pinned_comes_back() -> None:
    assert jumpstart_models_of(document(), "") == {"acme-tiny": PINNED}
    assert jumpstart_models_of({"version": 1, "models": {}}, "") == {}
    assert jumpstart_models_of(document(), "", without=["acme-tiny"]) == {}


@pytest.mark.parametrize("stated", [None, [], {"version": 2}, {"version": 1, "jumpstart": 7}])
def test_what_is_no_lock_file(stated: Any) -> None:
    assert code_of(stated) == "LLE343"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", "1.0.1"),
        ("version", 1.0),
        ("eula", None),
        ("gated", "no"),
        ("network_isolation", 1),
        ("download_timeout", 0),
        ("servings", None),
        ("servings", [7]),
        ("digest", None),
    ],
)
def test_an_edit_is_found(key: str, value: Any) -> None:
    changed = document()
    changed["jumpstart"]["acme-tiny"][key] = value
    assert code_of(changed) == "LLE345"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("artifact", "../other/"),
        ("artifact", "acme/../../other/"),
        ("artifact", "/acme/"),
        ("artifact", "acme/*"),  # which a policy would take for more
        ("artifact", "acme/${aws:username}/"),
        ("artifact", ""),
        ("image", "two words"),
        ("environment", {"A": 1}),
        ("instance_types", [7]),
    ],
)
def test_a_form_that_no_catalogue_has_is_refused_whatever_the_digest(key: str, value: Any) -> None:
    changed = document()
    stated = changed["jumpstart"]["acme-tiny"]
    stated["servings"][0][key] = value
    del stated["digest"]
    stated["digest"] = digest_of("acme-tiny", stated)
    assert code_of(changed) == "LLE345"


def test_another_registry_is_known_in_its_region_alone() -> None:
    assert PINNED.servings[0].deep_learning_container == ("djl-inference", "0.29.0-cu124")
    for image in (DLC.replace("763104351884", "683313688378"), DLC.replace(":", "@sha256:"), "a/b"):
        serving = JumpStartServing(instance_types=(), image=image, artifact="a")
        assert serving.deep_learning_container is None


@pytest.mark.parametrize(
    ("types", "accepted", "code"),
    [
        (["ml.g5.xlarge"], False, "LLE396"),
        (["ml.g5.2xlarge"], True, "LLE315"),
        (["ml.g5.xlarge", "ml.inf2.xlarge"], True, "LLE314"),
        ([], True, "LLE314"),
    ],
)
def test_types_and_agreement_are_held_against_the_pin(
    types: list[str], accepted: bool, code: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PINNED.served_on(types, accept_eula=accepted)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("region", "domain"),
    [  # botocore 1.43, partitions.json
        ("us-gov-west-1", "amazonaws.com"),
        ("cn-north-1", "amazonaws.com.cn"),
        ("eusc-de-east-1", "amazonaws.eu"),
        ("us-isof-south-1", "csp.hci.ic.gov"),
    ],
)
def test_agreements_are_read_in_the_partitions_own_domain(region: str, domain: str) -> None:
    assert bucket_url(region) == f"https://jumpstart-cache-prod-{region}.s3.{region}.{domain}"
