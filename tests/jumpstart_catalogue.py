"""A catalogue of JumpStart in the form of AWS's: models that are made up, with what real ones have.

The form is that which sagemaker-core 2.27.0 reads (jumpstart/types.py); the Llama's image, key and
environment are those of public deployments of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from low_latency_endpoint.hugging_face.jumpstart_catalogue import pin_jumpstart
from low_latency_endpoint.hugging_face.lock_file import LOCK_NAME, write_lock

LLAMA, EMBEDDER, SCRIPTED, BOUGHT = (
    "meta-textgeneration-llama-guard-3-8b",
    "acme-embedder",
    "acme-scripted",
    "acme-bought",
)
DLC = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
KEY = "meta-textgeneration/meta-textgeneration-llama-guard-3-8b/artifacts/inference-prepack/v1.0.0/"
NEURON_KEY = KEY.replace("inference-prepack", "inference-prepack-neuron")
EULA_KEY = "fmhMetadata/eula/llamaEula.txt"


def _variants(**by_name: dict[str, Any]) -> dict[str, Any]:
    return {
        "regional_aliases": {
            "us-east-1": {
                "gpu": f"{DLC}/djl-inference:0.29.0-lmi11.0.0-cu124",
                "neuron": f"{DLC}/djl-inference:0.29.0-neuronx-sdk2.19.1",
                "cpu": "683313688378.dkr.ecr.us-east-1.amazonaws.com/acme-serving:1.0-cpu-py3",
            }
        },
        "variants": by_name,
    }


def _image(alias: str, **properties: Any) -> dict[str, Any]:
    return {"regional_properties": {"image_uri": f"${alias}"}, "properties": properties}


def _variable(name: str, default: Any) -> dict[str, Any]:
    return {"name": name, "type": "text", "default": default, "scope": "container"}


def llama(version: str = "1.0.0") -> dict[str, Any]:
    """Gated, with three configurations: one needs a draft model, one is for Neuron."""
    return {
        "model_id": LLAMA,
        "version": version,
        "gated_bucket": True,
        "hosting_eula_key": EULA_KEY,
        "hosting_use_script_uri": False,
        "hosting_prepacked_artifact_key": KEY,
        "inference_enable_network_isolation": True,
        "default_inference_instance_type": "ml.g5.2xlarge",
        "supported_inference_instance_types": ["ml.g5.2xlarge"],
        "deploy_kwargs": {
            "model_data_download_timeout": 1200,
            "container_startup_health_check_timeout": 900,
        },
        "inference_environment_variables": [
            _variable("HF_MODEL_ID", "/opt/ml/model"),
            _variable("SAGEMAKER_MODEL_SERVER_WORKERS", 1),
        ],
        "hosting_instance_type_variants": _variants(g5=_image("gpu")),
        "inference_configs": {
            "neuron": {"component_names": ["neuron"]},
            "lmi": {"component_names": ["lmi"]},
            "lmi-optimized": {"component_names": ["lmi", "draft"]},
        },
        "inference_config_rankings": {
            "overall": {"description": "", "rankings": ["lmi-optimized", "lmi", "neuron"]}
        },
        "inference_config_components": {
            "lmi": {
                "gated_bucket": False,  # which a component does not decide
                "supported_inference_instance_types": ["ml.g5.2xlarge", "ml.g5.12xlarge"],
                "hosting_instance_type_variants": {
                    "variants": {
                        "g5": _image("gpu", environment_variables={"OPTION_MAX_MODEL_LEN": "8192"}),
                        "ml.g5.12xlarge": {
                            "properties": {
                                "environment_variables": {"OPTION_TENSOR_PARALLEL_DEGREE": "4"}
                            }
                        },
                    }
                },
            },
            "draft": {
                "hosting_additional_data_sources": {"speculative_decoding": [{"channel_name": "d"}]}
            },
            "neuron": {
                "hosting_prepacked_artifact_key": NEURON_KEY,
                "supported_inference_instance_types": ["ml.inf2.24xlarge", "ml.g5.2xlarge"],
                "hosting_instance_type_variants": {"variants": {"inf2": _image("neuron")}},
            },
        },
    }


def embedder(version: str = "1.9.0") -> dict[str, Any]:
    """Open to all, an archive, without configurations, in an image of no known registry."""
    return {
        "model_id": EMBEDDER,
        "version": version,
        "hosting_prepacked_artifact_key": f"acme/{EMBEDDER}-{version}.tar.gz",
        "supported_inference_instance_types": ["ml.c5.xlarge", "ml.p2.xlarge"],
        "inference_environment_variables": [_variable("SAGEMAKER_ENV", 1)],
        "hosting_instance_type_variants": _variants(c5=_image("cpu")),
    }


def documents() -> dict[str, bytes]:
    """What the public bucket holds, by key."""
    specifications = [
        llama(),
        embedder(),
        embedder("1.10.0") | {"deprecated": True, "deprecated_message": "Use 1.9.0."},
        {
            "model_id": SCRIPTED,
            "version": "1.0.0",
            "hosting_artifact_key": "acme/a.tar.gz",
            "supported_inference_instance_types": ["ml.c5.xlarge"],
            "hosting_instance_type_variants": _variants(c5=_image("cpu")),
        },
        embedder() | {"model_id": BOUGHT, "hosting_model_package_arns": {"us-east-1": "arn"}},
    ]
    manifest, found = [], {}
    for each in specifications:
        key = f"community_models/{each['model_id']}/specs_v{each['version']}.json"
        manifest.append(
            {
                "model_id": each["model_id"],
                "version": each["version"],
                "min_version": "2.189.0",
                "spec_key": key,
            }
        )
        found[key] = json.dumps(each).encode()
    return {"models_manifest.json": json.dumps(manifest).encode(), **found}


def written_jumpstart(folder: Path, *, newer: bool = False) -> str:
    """The lock file in a folder, with the two models that can be pinned; or as of a newer image."""
    found = documents()
    if newer:
        found = {key: value.replace(b"lmi11.0.0", b"lmi12.0.0") for key, value in found.items()}
    read = found.__getitem__
    models = [pin_jumpstart(read, name, "us-east-1").model for name in (LLAMA, EMBEDDER)]
    write_lock(folder / LOCK_NAME, jumpstart=models)
    return str(folder / LOCK_NAME)
