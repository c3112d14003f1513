"""Rules about models of SageMaker JumpStart: pinned in a lock file, served from AWS's own bucket."""

from __future__ import annotations

from ..errors import rule

_MODELS = "/sagemaker/latest/dg/jumpstart-foundation-models-choose.html"

JUMPSTART_MODEL = rule(
    "LLE395",
    "JumpStart has no such model, or no such version of it, in this Region",
    fix="Take model ID and version from the list, or another Region: --region.",
    source="https://sagemaker.readthedocs.io/en/stable/doc_utils/pretrainedmodels.html",
)
JUMPSTART_EULA = rule(
    "LLE396",
    "the model's end-user license agreement is not accepted",
    fix="Read it, then say so: accept_eula=True, or accept_eula: true in the settings.",
    source=_MODELS,
)
JUMPSTART_REGION = rule(
    "LLE397",
    "JumpStart has no bucket in this Region, and SageMaker reads a model's data in its own alone",
    fix="Deploy into one of the Regions with JumpStart.",
    source="https://github.com/aws/sagemaker-python-sdk",
)
JUMPSTART_TYPE = rule(
    "LLE315",
    "JumpStart does not serve the model on this instance type",
    fix="Choose one of the types; or name image and data yourself: Container(image=..., "
    "data=ModelData.from_uri(..., accept_eula=True)).",
    source=_MODELS,
)
JUMPSTART_NOT_FILES = rule(
    "LLE316",
    "the model is served of more than an image and its files",
    fix="Choose another model or version. One that AWS Marketplace sells is served as "
    "Container(model_package=...).",
    source=_MODELS,
)
JUMPSTART_UNREACHABLE = rule(
    "LLE317",
    "JumpStart's bucket does not answer as it should",
    fix="Check network and proxy, and try again later. The bucket is public: no credentials are "
    "needed.",
    source="https://github.com/aws/sagemaker-python-sdk",
)
EULA_OF_PREFIX = rule(
    "LLE318",
    "accepting an end-user license agreement goes with the data of one model in S3",
    fix="Leave out accept_eula: many models from one prefix and archives of this machine have "
    "none, and a model package says it itself.",
    source="/sagemaker/latest/APIReference/API_S3ModelDataSource.html",
)
