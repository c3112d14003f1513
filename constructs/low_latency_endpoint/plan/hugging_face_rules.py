"""Rules about models of the Hugging Face Hub: pinned in a lock file, staged into S3, served offline."""

from __future__ import annotations

from ..errors import rule

HUB = "https://huggingface.co/docs/hub/"
CONTAINERS = "https://aws.github.io/deep-learning-containers/"

LOCK_FILE = rule(
    "LLE343",
    "a lock file of models cannot be read",
    fix="Let low-latency pin MODEL write it, and keep it under version control.",
)
NOT_PINNED = rule(
    "LLE344",
    "the model is not in the lock file",
    fix="Run low-latency pin MODEL, which needs the network; synthesis reads the lock file alone.",
)
LOCK_EDITED = rule(
    "LLE345",
    "a model in the lock file is not as low-latency pin wrote it",
    fix="Run low-latency pin MODEL again; what it writes is not for editing.",
)
LICENSE = rule(
    "LLE346",
    "the model's licence is not accepted",
    fix="Read the licence on the model's page, then name it: accept_license.",
    source=HUB + "repositories-licenses",
)
HUB_MODEL = rule(
    "LLE347",
    "the Hub has no such model, or does not show it to you",
    fix="Check the name, as in Qwen/Qwen3-8B. A private model needs a token that may read it: "
    "HF_TOKEN, or hf auth login.",
    source=HUB + "models-the-hub",
)
HUB_REVISION = rule(
    "LLE348",
    "the model has no such revision",
    fix="Name a branch, a tag or a commit of its history; by default main.",
    source=HUB + "repositories-getting-started",
)
HUB_GATED = rule(
    "LLE349",
    "the model is gated: its files are for accounts whose request was granted",
    fix="Ask for access on the model's page, and give a token of that account: HF_TOKEN for "
    "low-latency pin, a secret in Secrets Manager for the deployment.",
    source=HUB + "models-gated",
)
NO_SAFETENSORS = rule(
    "LLE350",
    "the model has no weights that are safe to load",
    fix="Choose a model or a revision with .safetensors files. Pickle files run code when they are "
    "loaded: low-latency pin --allow-pickle, if you trust who wrote them.",
    source=HUB + "security-pickle",
)
FOREIGN_CODE = rule(
    "LLE351",
    "the model's code is in another repository, which a container without network cannot load",
    fix="Choose a model that transformers knows itself, or whose code is in its own repository.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
FILE_TOO_LARGE = rule(
    "LLE352",
    "a file is larger than one call of a Lambda function copies",
    fix="Stage the model before the deployment, from a machine or a pipeline: low-latency stage.",
    source="/lambda/latest/dg/gettingstarted-limits.html",
)
NO_CONTAINER = rule(
    "LLE353",
    "no container is known for this task on this accelerator",
    fix="Choose another instance type, or name an image yourself with Container(image=...).",
    source=CONTAINERS,
)
ARCHITECTURE_NOT_SERVED = rule(
    "LLE354",
    "the container does not know the model's architecture",
    fix="Name an image that does with Container(image=...), or choose another model.",
    source=CONTAINERS,
)
DOES_NOT_FIT = rule(
    "LLE355",
    "the model does not fit into the accelerators' memory",
    fix="Choose one of the instance types, a smaller context, or a quantized model.",
)
NO_DISK = rule(
    "LLE356",
    "the model does not fit onto the instance's storage",
    fix="Ask for a larger volume (volume_size), or choose a type with more local storage.",
    source="/sagemaker/latest/dg/host-instance-storage.html",
)
FOREIGN_FILES = rule(
    "LLE357",
    "under the model's prefix in S3 is what the lock file does not have",
    fix="Remove it: SageMaker gives everything under the prefix to the container.",
    source="/sagemaker/latest/dg/large-model-inference-uncompressed.html",
)
HUB_UNREACHABLE = rule(
    "LLE358",
    "the Hub does not answer as it should",
    fix="Try again later; behind a mirror or a proxy set HF_ENDPOINT to it.",
    source="https://status.huggingface.co",
)
HUB_ENDPOINT = rule(
    "LLE359",
    "the Hub is asked over TLS",
    fix="Name it as https://huggingface.co, or a mirror of yours likewise.",
)
FILE_DIFFERS = rule(
    "LLE313",
    "a file is not what the lock file pins",
    fix="Nothing of it was kept. Try again; if it stays so, pin the model again and find out what "
    "changed, and who changed it.",
)
INSTANCE_TYPE_NEEDED = rule(
    "LLE314",
    "which container serves a model of the Hub depends on the instance type",
    fix="Pass instance_type= to Container.from_hugging_face; LowLatencyEndpoint does it itself.",
)
HUB_MODEL_ALONE = rule(
    "LLE368",
    "a model of the Hub comes with its files, and is one model",
    fix="Leave out data, model_package and multi_model beside hugging_face.",
)
OWN_CODE = rule(
    "LLE390",
    "the model brings its own code, and whether the container may run it is not said",
    fix="Read the .py files that the lock file pins, then say trust_remote_code=True; or False, if "
    "the server knows the model without them.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
CONTEXT_LENGTH = rule(
    "LLE391",
    "the model was not made for a context of this length",
    fix="Ask for a context of at most the model's own, or leave it out.",
)
SERVER = rule(
    "LLE392",
    "no such server of models is known",
    fix="Leave it out, and the task decides; or name an image with Container(image=...).",
    source=CONTAINERS,
)
STAGED_FILES_GONE = rule(
    "LLE398",
    "files of a model are gone after they were staged",
    fix="Deploy again: another stack that used the same files was being deleted meanwhile, or "
    "somebody removed them.",
)
TOO_MANY_FILES = rule(
    "LLE399",
    "a model has more files than a deployment stages",
    fix="Pin fewer: what is served rarely needs all of them. Or stage the model with low-latency "
    "stage and serve it with ModelData.from_s3(bucket, pinned.prefix).",
)
GGUF_CHOICE = rule(
    "LLE319",
    "the model has several GGUF files, of which one is served",
    fix="Choose one: low-latency pin MODEL --include '*Q4_K_M*.gguf'.",
    source=HUB + "gguf",
)
NOT_WHOLE = rule(
    "LLE320",
    "the model's repository is not whole",
    fix="Choose another revision, or tell who owns the model.",
    source="https://huggingface.co/docs/transformers/big_models",
)
