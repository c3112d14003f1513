"""Tags reach each thing that SageMaker makes in a call of its own, and change it in place."""

from __future__ import annotations

import pytest
from aws_cdk import Tags
from aws_cdk.assertions import Template

from low_latency_endpoint import EndpointOptions, FurtherVariant
from release.stack_changes import Effect, changes_of

from .stack_changes import those
from .team_apps import an_app, serve, stack_of

HOSTED = {"AWS::SageMaker::Model", "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Endpoint"}


def template_with(tags, own, *, others=None):
    """The template of the pattern with a model of its own for a variant, or for a shadow."""
    stack = stack_of(an_app(), "Ml")
    pattern = serve(stack, endpoint=EndpointOptions(endpoint_name="sentiment", tags=tags), **own)
    for key, value in (others or {}).items():
        Tags.of(pattern).add(key, value)
    return Template.from_stack(stack).to_json()


def tags_of_hosted(template):
    """Type and tags of each, in the order of the template."""
    return [
        (each["Type"], {tag["Key"]: tag["Value"] for tag in each["Properties"].get("Tags", ())})
        for each in template["Resources"].values()
        if each["Type"] in HOSTED
    ]


@pytest.fixture(params=["variants", "shadow"])
def own(request, parts):
    """A second model."""
    further = FurtherVariant(name="b", containers=[parts.container()])
    return {request.param: [further] if request.param == "variants" else further}


def test_tags_of_the_endpoint_are_those_of_configuration_and_models_too(own):
    found = tags_of_hosted(template_with({"team": "search", "cost-centre": "42"}, own))
    assert {kind for kind, _ in found} == HOSTED
    assert len(found) == 4  # two models
    assert all(tags == {"team": "search", "cost-centre": "42"} for _, tags in found)


def test_without_tags_there_are_none(own):
    assert all(not tags for _, tags in tags_of_hosted(template_with({}, own)))


def test_aspects_add_tags_and_win(own):
    others = {"team": "platform", "tier": "1"}
    found = tags_of_hosted(
        template_with({"team": "search", "cost-centre": "42"}, own, others=others)
    )
    wanted = {"team": "platform", "tier": "1", "cost-centre": "42"}
    assert [tags for _, tags in found] == [wanted] * 4


@pytest.mark.parametrize("before", [{}, {"team": "search"}], ids=["first tags", "other tags"])
def test_other_tags_replace_nothing(own, before):
    changes = changes_of(template_with(before, own), template_with({"team": "nlp"}, own))
    updated = those(changes, Effect.UPDATED)
    assert set(updated.values()) == HOSTED
    assert len(updated) == 4
    assert all(changes[name].properties == {"Tags"} for name in updated)
    assert len(those(changes, Effect.LEFT)) == len(changes) - 4


@pytest.mark.parametrize(
    ("part", "kind"),
    [("model", "AWS::SageMaker::Model"), ("configuration", "AWS::SageMaker::EndpointConfig")],
)
def test_a_part_alone(stack, parts, template_of, part, kind):
    getattr(parts, part)(stack, tags={"team": "search"})
    assert template_of(stack).only(kind)["Tags"] == [{"Key": "team", "Value": "search"}]
