"""Rules about models of the Hugging Face Hub: pinned in a lock file, staged into S3, served offline."""

from __future__ import annotations

from ..errors import rule

HUB = "https://huggingface.co/docs/hub/"
CONTAINERS = "https://aws.github.io/deep-learning-containers/"

LOCK_FILE = rule(
    "LLE343", "a lock file of models cannot be read", fix="Write it with low-latency pin MODEL."
)
NOT_PINNED = rule(
    "LLE344",
    "the model is not in the lock file",
    fix="Run low-latency pin MODEL where the network is reachable.",
)
LOCK_EDITED = rule(
    "LLE345",
    "the lock file's entry for a model was changed",
    fix="Run low-latency pin MODEL again, and do not edit the file.",
)
LICENSE = rule(
    "LLE346",
    "the model's licence is not accepted",
    fix="Read the licence on the model's page, then name it in accept_license.",
    source=HUB + "repositories-licenses",
)
HUB_MODEL = rule(
    "LLE347",
    "the Hub has no such model, or does not show it to you",
    fix="Check the name, as in Qwen/Qwen3-8B. A private model needs a token: HF_TOKEN, or hf "
    "auth login.",
    source=HUB + "models-the-hub",
)
HUB_REVISION = rule(
    "LLE348",
    "the model has no such revision",
    fix="Name a branch, tag or commit of its history; the default is main.",
    source=HUB + "repositories-getting-started",
)
HUB_GATED = rule(
    "LLE349",
    "the model is gated, and access was not granted",
    fix="Ask for access on the model's page, then give that account's token: HF_TOKEN for "
    "low-latency pin, a Secrets Manager secret for the deployment.",
    source=HUB + "models-gated",
)
NO_SAFETENSORS = rule(
    "LLE350",
    "the model has no weights that are safe to load",
    fix="Choose a model or revision with .safetensors files. If you trust its pickle files, "
    "which run code when they are loaded: low-latency pin --allow-pickle.",
    source=HUB + "security-pickle",
)
FOREIGN_CODE = rule(
    "LLE351",
    "the model's code is in another repository",
    fix="Choose a model that transformers knows, or with code in its own repository. The "
    "container has no network.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
FILE_TOO_LARGE = rule(
    "LLE352",
    "a file is too large for the staging function",
    fix="Stage the model before the deployment: low-latency stage.",
    source="/lambda/latest/dg/gettingstarted-limits.html",
)
NO_CONTAINER = rule(
    "LLE353",
    "no container is known for this task on this accelerator",
    fix="Choose another instance type, or name an image with Container(image=...).",
    source=CONTAINERS,
)
ARCHITECTURE_NOT_SERVED = rule(
    "LLE354",
    "the container does not know the model's architecture",
    fix="Choose another model, or name an image with Container(image=...).",
    source=CONTAINERS,
)
DOES_NOT_FIT = rule(
    "LLE355",
    "the model does not fit into the accelerators' memory",
    fix="Choose an allowed instance type, a smaller context, or a quantized model.",
)
NO_DISK = rule(
    "LLE356",
    "the model does not fit onto the instance's storage",
    fix="Raise volume_size, or choose a type with more local storage.",
    source="/sagemaker/latest/dg/host-instance-storage.html",
)
FOREIGN_FILES = rule(
    "LLE357",
    "the model's prefix in S3 holds files that the lock file lacks",
    fix="Remove them: the container would get them too.",
    source="/sagemaker/latest/dg/large-model-inference-uncompressed.html",
)
HUB_UNREACHABLE = rule(
    "LLE358",
    "the Hub does not answer as it should",
    fix="Try again later. Behind a mirror or proxy, set HF_ENDPOINT to it.",
    source="https://status.huggingface.co",
)
HUB_ENDPOINT = rule(
    "LLE359",
    "the Hub's address is not valid",
    fix="Use https://huggingface.co, or the https address of your mirror.",
)
FILE_DIFFERS = rule(
    "LLE313",
    "a file differs from the lock file",
    fix="Try again; nothing of it was kept. If it still differs, pin the model again and find "
    "out who changed it.",
)
INSTANCE_TYPE_NEEDED = rule(
    "LLE314",
    "a container of a Hub model needs the instance type",
    fix="Pass instance_type= to Container.from_hugging_face.",
)
HUB_MODEL_ALONE = rule(
    "LLE368",
    "a model of the Hub is combined with other data",
    fix="Leave out data, model_package and multi_model beside hugging_face.",
)
OWN_CODE = rule(
    "LLE390",
    "the model brings code, and trust_remote_code is not set",
    fix="Read the .py files that the lock file pins. Set trust_remote_code=True, or False if "
    "the server knows the model without them.",
    source="https://huggingface.co/docs/transformers/custom_models",
)
CONTEXT_LENGTH = rule(
    "LLE391",
    "the model does not support this context length",
    fix="Give at most the model's own, or leave it out.",
)
SERVER = rule(
    "LLE392",
    "this model server is not known",
    fix="Leave it out, or name an image with Container(image=...).",
    source=CONTAINERS,
)
STAGED_FILES_GONE = rule(
    "LLE398",
    "a model's staged files are gone",
    fix="Deploy again. Somebody removed them, or another stack with them was deleted.",
)
TOO_MANY_FILES = rule(
    "LLE399",
    "a model has more files than a deployment stages",
    fix="Pin fewer files, or use low-latency stage and ModelData.from_s3(bucket, pinned.prefix).",
)
GGUF_CHOICE = rule(
    "LLE319",
    "the model has several GGUF files",
    fix="Choose one: `low-latency pin MODEL --include '*Q4_K_M*.gguf'`.",
    source=HUB + "gguf",
)
NOT_WHOLE = rule(
    "LLE320",
    "the model's repository is incomplete",
    fix="Choose another revision, or tell the model's owner.",
    source="https://huggingface.co/docs/transformers/big_models",
)
