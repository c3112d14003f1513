"""Images in registries, which preflight asks for."""

from __future__ import annotations

import json

import pytest

from local_sagemaker import LocalAws

AWS_S_OWN = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference"


def names_in(aws: LocalAws, region: str) -> list[str]:
    """The account's repositories of a Region; other tests of the same local AWS have theirs."""
    found = aws.client("ecr", region).describe_repositories()["repositories"]
    return [each["repositoryName"] for each in found]


def test_an_image_is_in_the_registry_that_its_uri_names_and_in_no_other(aws: LocalAws) -> None:
    aws.add_image(f"{AWS_S_OWN}:2.6.0-cpu")
    aws.add_image(f"{AWS_S_OWN}:2.6.0-arm", architecture="arm64")
    aws.add_image(f"{AWS_S_OWN}:2.6.0-cpu")  # pushing it again is no error
    ecr = aws.client("ecr")
    asked = {
        "repositoryName": "pytorch-inference",
        "imageIds": [{"imageTag": "2.6.0-cpu"}, {"imageTag": "2.6.0-arm"}, {"imageTag": "1.0"}],
    }
    try:
        answer = ecr.batch_get_image(registryId="763104351884", **asked)
        platforms = {
            each["imageId"]["imageTag"]: [
                entry["platform"]["architecture"]
                for entry in json.loads(each["imageManifest"])["manifests"]
            ]
            for each in answer["images"]
        }
        assert platforms == {"2.6.0-cpu": ["amd64"], "2.6.0-arm": ["arm64"]}
        assert [each["imageId"]["imageTag"] for each in answer["failures"]] == ["1.0"]
        # moto would look into the caller's own registry for all of them.
        for registry in ({}, {"registryId": aws.account}, {"registryId": "111122223333"}):
            with pytest.raises(ecr.exceptions.RepositoryNotFoundException):
                ecr.batch_get_image(**registry, **asked)
        assert "pytorch-inference" not in names_in(aws, "us-east-1")
    finally:
        ecr.delete_repository(
            registryId="763104351884", repositoryName="pytorch-inference", force=True
        )


def test_an_image_lies_in_the_region_of_its_uri(aws: LocalAws) -> None:
    aws.add_image(f"{aws.account}.dkr.ecr.eu-west-1.amazonaws.com/team/model:1")
    assert "team/model" in names_in(aws, "eu-west-1")
    assert "team/model" not in names_in(aws, "us-east-1")
    aws.client("ecr", "eu-west-1").delete_repository(repositoryName="team/model", force=True)


@pytest.mark.parametrize(
    "uri",
    ["team/model:1", "123456789012.dkr.ecr.us-east-1.amazonaws.com/m", "docker.io/team/model:1"],
)
def test_what_is_no_tag_in_a_registry_of_ecr_is_refused(aws: LocalAws, uri: str) -> None:
    with pytest.raises(ValueError, match="is no image of ECR"):
        aws.add_image(uri)
