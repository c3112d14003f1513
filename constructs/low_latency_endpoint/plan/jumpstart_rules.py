"""Rules about models of SageMaker JumpStart: pinned in a lock file, served from AWS's own bucket."""

from __future__ import annotations

from ..errors import rule

_MODELS = "/sagemaker/latest/dg/jumpstart-foundation-models-choose.html"

JUMPSTART_MODEL = rule(
    "LLE395",
    "JumpStart has no such model, or no such version of it, in this Region",
    fix="Use an ID and version from the list, or another --region.",
    source="https://sagemaker.readthedocs.io/en/stable/doc_utils/pretrainedmodels.html",
)
JUMPSTART_EULA = rule(
    "LLE396",
    "the model's end-user license agreement is not accepted",
    fix="Read it, then set accept_eula=True (settings: accept_eula: true).",
    source=_MODELS,
)
JUMPSTART_REGION = rule(
    "LLE397",
    "JumpStart has no bucket in this Region",
    fix="Deploy into a Region with JumpStart.",
    source="https://github.com/aws/sagemaker-python-sdk",
)
JUMPSTART_TYPE = rule(
    "LLE315",
    "JumpStart does not serve the model on this instance type",
    fix="Choose an allowed type, or use Container(image=..., data=ModelData.from_uri(..., "
    "accept_eula=True)).",
    source=_MODELS,
)
JUMPSTART_NOT_FILES = rule(
    "LLE316",
    "the model needs more than an image and its files",
    fix="Choose another model or version. Serve one from AWS Marketplace as "
    "Container(model_package=...).",
    source=_MODELS,
)
JUMPSTART_UNREACHABLE = rule(
    "LLE317",
    "JumpStart's bucket does not answer as it should",
    fix="Check network and proxy, and try again later. The bucket needs no credentials.",
    source="https://github.com/aws/sagemaker-python-sdk",
)
EULA_OF_PREFIX = rule(
    "LLE318",
    "accept_eula is given with data that takes no license agreement",
    fix="Leave it out; it is for one model's data in S3.",
    source="/sagemaker/latest/APIReference/API_S3ModelDataSource.html",
)
