"""The instance table against AWS's own models, and the facts that decisions rest on."""

from __future__ import annotations

import botocore.session
import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_facts, instance_types, mistyped
from low_latency_endpoint.facts.limits import INSTANCE_TYPE
from tests.depth import sampled


@pytest.fixture(scope="module")
def hosting_types() -> list[str]:
    model = botocore.session.get_session().get_service_model("sagemaker")
    return model.shape_for("ProductionVariantInstanceType").enum


def test_the_types_are_those_of_the_api(hosting_types: list[str]) -> None:
    assert len(hosting_types) == 277
    assert set(instance_types()) == set(hosting_types)


def test_name_family_and_size_agree() -> None:
    for name, facts in instance_types().items():
        assert name == facts.name == f"ml.{facts.family}.{facts.size}"


def test_every_row_says_what_rules_need() -> None:
    for facts in instance_types().values():
        assert facts.vcpus
        assert facts.vcpus >= 1
        assert facts.memory_gib
        assert facts.architecture in ("x86_64", "arm64")
        assert facts.accelerator in (None, "nvidia", "neuron", "gaudi")
        assert (
            bool(facts.accelerator) == bool(facts.accelerator_count) == bool(facts.accelerator_name)
        ), facts
        assert bool(facts.neuron_cores) == (facts.accelerator == "neuron"), facts


def test_what_is_unknown_is_said_to_be_so() -> None:
    doubtful = {
        facts.name
        for facts in instance_types().values()
        if None in (facts.local_storage_gb, facts.network_gbps, facts.accelerator_memory_mib)
    }
    assert " ".join(sorted(doubtful)) == (
        "ml.dl1.24xlarge ml.p2.16xlarge ml.p2.8xlarge ml.p2.xlarge ml.p3.2xlarge "
        "ml.p6e-gb200.36xlarge"
    )
    assert all(instance_types()[name].note for name in doubtful)


def test_graviton_types() -> None:
    families = {
        facts.family
        for facts in instance_types().values()
        if facts.architecture == "arm64" and not facts.accelerator
    }
    assert " ".join(sorted(families)) == "c6g c6gd c6gn c7g c8g m6g m6gd m8g r6g r6gd r7gd r8g"
    assert sum(facts.family in families for facts in instance_types().values()) == 94


def test_burstable_types_are_the_four_t2() -> None:
    burstable = sorted(name for name, facts in instance_types().items() if facts.burstable)
    assert " ".join(burstable) == "ml.t2.2xlarge ml.t2.large ml.t2.medium ml.t2.xlarge"


@pytest.mark.parametrize(
    ("family", "sizes", "counts"),
    [
        ("g4dn", "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge", (1, 1, 1, 1, 4, 1)),
        (
            "g5",
            "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge",
            (1, 1, 1, 1, 4, 1, 4, 8),
        ),
        ("g7e", "2xlarge 4xlarge 8xlarge 12xlarge 24xlarge 48xlarge", (1, 1, 1, 2, 4, 8)),
        ("inf1", "xlarge 2xlarge 6xlarge 24xlarge", (1, 1, 4, 16)),
        ("inf2", "xlarge 8xlarge 24xlarge 48xlarge", (1, 1, 6, 12)),
        ("trn1", "2xlarge 32xlarge", (1, 16)),
        ("p5", "4xlarge 48xlarge", (1, 8)),
    ],
)
def test_accelerator_counts(family: str, sizes: str, counts: tuple[int, ...]) -> None:
    assert (
        tuple(instance_types()[f"ml.{family}.{size}"].accelerator_count for size in sizes.split())
        == counts
    )


@pytest.mark.parametrize(("family", "cores"), [("inf1", 4), ("inf2", 2), ("trn1", 2), ("trn2", 8)])
def test_neuron_cores_per_chip(family: str, cores: int) -> None:
    for facts in instance_types().values():
        if facts.family == family:
            assert facts.neuron_cores == cores * (facts.accelerator_count or 0)


def test_trn2_has_the_memory_of_its_page_not_of_the_ec2_dump() -> None:
    facts = instance_types()["ml.trn2.48xlarge"]
    assert facts.accelerator_memory_mib == 16 * 96 * 1024  # 1.5 TB: 96 GiB for each of 16 chips
    assert "8388608" in facts.note


def test_local_storage() -> None:
    with_storage = {facts.family for facts in instance_types().values() if facts.local_storage_gb}
    assert " ".join(sorted(with_storage)) == (
        "c5d c6gd g4dn g5 g6 g6e g7 g7e m5d m6gd p4d p4de p5 p5e p5en p6-b200 p6-b300 "
        "r5d r6gd r7gd trn1 trn1n trn2"
    )


def test_several_network_cards_count_once() -> None:
    # p5.48xlarge has 32 cards of 100 Gbit/s, of which serving uses the default one
    assert instance_types()["ml.p5.48xlarge"].network_gbps == 100


def test_unknown_type_is_none() -> None:
    assert instance_facts("ml.m99.xlarge") is None


@pytest.mark.parametrize("name", instance_types())
def test_a_known_type_is_a_type(name):
    assert INSTANCE_TYPE.check(name) == name
    assert mistyped(name) is None


@pytest.mark.parametrize("name", sampled(list(instance_types()), 20))
def test_a_slip_in_the_size_is_refused(name):
    """A letter that is missing, twice or swapped; no name of AWS's is one of these."""
    beginning, _, size = name.rpartition(".")
    letters = size.lstrip("0123456789")
    digits = size.removesuffix(letters)
    slips = {
        *(letters[:place] + letters[place + 1 :] for place in range(len(letters))),
        *(letters[:place] + letters[place - 1 :] for place in range(1, len(letters))),
        letters[:-2] + letters[-1] + letters[-2],
        letters[:-1] + "w",
    }
    for slip in slips - {"large", "xlarge"}:
        with pytest.raises(ConfigurationError, match="LLE405") as refused:
            INSTANCE_TYPE.check(f"{beginning}.{digits}{slip}")
        assert "Write ml." in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        *("ml.g8.xlarge", "ml.m9.12xlarge", "ml.g6.3xlarge", "ml.m5.metal", "ml.c7a.large"),
        *("ml.gr6.4xlarge", "ml.inf3.xlarge", "ml.trn3.48xlarge", "ml.p7-c100.48xlarge"),
        *("ml.m8i-flex.large", "ml.c8gb.metal-24xl", "ml.x2iedn.xlarge", "ml.q5.xlarge"),
        *("ml.p6-b400.48xlarge", "ml.m9.nano", "ml.inf1.new"),
    ],
)
def test_what_aws_may_add_is_not_known_and_not_refused(name):
    assert name not in instance_types()
    assert INSTANCE_TYPE.check(name) == name


@pytest.mark.parametrize("name", ["ml.mm5.large", "ml.5m.large", "ml.m.xlarge"])
def test_a_slip_in_the_family_is_refused_where_no_family_is_called_so(name):
    with pytest.raises(ConfigurationError, match="LLE405"):
        INSTANCE_TYPE.check(name)
