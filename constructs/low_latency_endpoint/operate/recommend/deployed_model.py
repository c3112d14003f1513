"""The deployed model of an endpoint: its name, its network, as the job's input."""

from __future__ import annotations

from typing import Any

from ...account.calls import Account
from ...account.endpoints import find_model, read_endpoint
from ...account.stacks import stack_ids
from ...errors import rule
from ...plan.limits import API
from ...settings import Settings

MODEL_TO_TEST = rule(
    "LLR103",
    "a recommendation job needs one existing model",
    fix="Deploy the stack first (make deploy), or pass --model-name or --model-package-arn.",
    source=API + "RecommendationJobInputConfig.html",
)


def find_deployed_model(account: Account, settings: Settings, key: str) -> dict[str, Any]:
    """The model that the endpoint of the settings runs now, as :func:`read_model` does.

    Parameters
    ----------
    account : Account
        Of which SageMaker is asked, and CloudFormation where the settings leave the endpoint's name
        open.
    settings : Settings
    key : str
        The endpoint's key in the settings.

    Raises
    ------
    ConfigurationError
        LLR103 when nothing is deployed, or several endpoints could be meant.
    """
    name = find_endpoint(account, settings, key)
    variants = _found(read_endpoint(account, name), f"endpoint {name}").variants
    variant = variants.get(settings.endpoints[key].variant_name, next(iter(variants.values())))
    if not variant.model_name:
        raise MODEL_TO_TEST.error(
            got=f"variant {variant.name} without a model of its own (inference components)",
            allowed="a variant with one",
        )
    return read_model(account, variant.model_name)


def read_model(account: Account, name: str) -> dict[str, Any]:
    """A model and its network, as a job's request has them.

    Raises
    ------
    ConfigurationError
        LLR103 when there is no such model.
    """
    network = _found(find_model(account, name), f"model {name}").get("VpcConfig")
    return {"ModelName": name, **({"VpcConfig": network} if network else {})}


def _found(found: Any, what: str) -> Any:
    if found is None:
        raise MODEL_TO_TEST.error(got=f"no {what}", allowed="what is deployed")
    return found


def find_endpoint(account: Account, settings: Settings, key: str) -> str:
    """The deployed endpoint's name: the settings' own, or the one that CloudFormation made.

    That one only the stack knows, and it tells when it has but one endpoint.

    Raises
    ------
    ConfigurationError
        LLR103 when several endpoints could be meant, or none is deployed.
    """
    named = settings.endpoints[key].endpoint_name
    if named:
        return named
    if len(settings.endpoints) > 1:
        raise MODEL_TO_TEST.error(
            got=f"{key} has no endpoint_name",
            allowed="endpoint_name in the settings",
            fix="State endpoint_name, or pass --model-name with the deployed model's name.",
        )
    found = list(stack_ids(account, settings.stack_name, "AWS::SageMaker::Endpoint").values())
    if len(found) != 1:
        raise MODEL_TO_TEST.error(
            got=f"{len(found)} endpoints in stack {settings.stack_name}", allowed="one endpoint"
        )
    return str(found[0].rpartition("/")[2])  # the physical ID is the endpoint's ARN
