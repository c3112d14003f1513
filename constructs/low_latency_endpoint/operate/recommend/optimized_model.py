"""What an optimization job wrote: read, shown, and adopted into the settings file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ...errors.findings import Place
from ...facts.instance_types import instance_facts
from ...report.document import Document, Part, Sentence, Table
from ...settings import ContainerSettings, EndpointSettings, served_containers
from ...settings.yaml_editing import YamlEntry
from .inference_requests import image_name
from .jobs import NOT_ADOPTABLE, Adoption, Job, type_change


@dataclass(frozen=True, slots=True)
class OptimizedModel:
    instance_type: str
    image: str  # empty where AWS recommends none
    model_data: str  # prefix in S3
    environment: Mapping[str, str]
    optimizations: tuple[str, ...]


def optimized_models(job: Job) -> list[OptimizedModel]:
    """What a completed job wrote, served as AWS's ``ModelBuilder.optimize`` does."""
    answer = job.answer
    if not job.succeeded:
        return []
    techniques = [pair for config in answer["OptimizationConfigs"] for pair in config.items()]
    environment = dict(answer.get("OptimizationEnvironment") or {})
    for _, stated in techniques:
        environment |= stated.get("OverrideEnvironment") or {}
    return [
        OptimizedModel(
            instance_type=answer["DeploymentInstanceType"],
            image=(answer.get("OptimizationOutput") or {}).get("RecommendedInferenceImage", ""),
            model_data=answer["OutputConfig"]["S3OutputLocation"].rstrip("/") + "/",
            environment=environment,
            optimizations=tuple(
                name.removeprefix("Model").removesuffix("Config") for name, _ in techniques
            ),
        )
    ]


def optimized_document(job: Job, current: str) -> Document:
    parts: list[Part] = []
    for model in optimized_models(job):
        takes = ["optimized: " + ", ".join(model.optimizations), model.image]
        takes += [f"{name}={value}" for name, value in model.environment.items()]
        type_ = model.instance_type + " (now)" * (model.instance_type == current)
        row = ("1", type_, "\n".join(filter(None, takes)))
        parts += [
            Table(("#", "Instance type", "What it takes"), [row], align="rl"),
            Sentence(f"The model is in {model.model_data}", "soft"),
        ]
    return job.document(*parts)


def adopt_optimized(
    result: OptimizedModel, key: str, endpoint: EndpointSettings, region: str | None = None
) -> Adoption:
    """What an optimized model changes in the settings of an endpoint.

    A stated container gets the result's data, image and environment. A model of the Hub gives way
    to a container, for its lock file pins other bytes than those: it keeps what held of it besides
    (no network, the variables that keep servers from calling out), and the notes say what it lost.
    LLR109 with several containers, and for a compiled model among instance pools.
    """
    if len(endpoint.containers) > 1:
        raise NOT_ADOPTABLE.error(
            got=f"a model for one of {len(endpoint.containers)} containers", allowed="one container"
        )
    if "Compilation" in result.optimizations and endpoint.instance_pools:
        raise NOT_ADOPTABLE.error(
            got=f"a model compiled for {result.instance_type}, and instance_pools",
            allowed="one instance type",
            fix="Remove instance_pools: a compiled model runs on the type of its job.",
        )
    here: Place = ("endpoints", key)
    values: dict[Place, Any] = {(*here, "instance_type"): result.instance_type}
    if endpoint.hugging_face is None:
        own, notes = _container(result, (*here, "containers", 0), endpoint.containers[0])
    else:
        own, notes = _instead_of_hub(result, here, endpoint, region)
    notes += _compiled_for(result)
    if endpoint.throughput is not None:
        notes.append(
            "throughput.tps_per_instance is still the model's from before: measure it with "
            "low-latency load-test --find-limit."
        )
    return Adoption(values | own, notes + type_change(endpoint, result.instance_type))


def _container(
    result: OptimizedModel, place: Place, former: ContainerSettings
) -> tuple[dict[Place, Any], list[str]]:
    values: dict[Place, Any] = {}
    notes = []
    image = former.image
    source = next(name for name in ("uri", "dlc", "ecr", "asset") if getattr(image, name))
    if not result.image:
        notes.append("AWS recommends no image: the settings' own stays.")
    elif source == "uri":
        values[(*place, "image", "uri")] = result.image
    elif source == "asset":
        notes.append(f"Left to you: the image. The result is for image: {{uri: {result.image}}}.")
    else:
        values[(*place, "image", source)] = YamlEntry("uri", result.image)
    data = former.data
    stated = next((name for name in ("s3", "asset") if data and getattr(data, name)), None)
    if stated:
        values[(*place, "data", stated)] = YamlEntry("s3_prefix", result.model_data)
    else:
        values[(*place, "data", "s3_prefix")] = result.model_data
    for variable, value in result.environment.items():
        values[(*place, "environment", variable)] = value
    return values, notes


def _instead_of_hub(
    result: OptimizedModel, here: Place, endpoint: EndpointSettings, region: str | None
) -> tuple[dict[Place, Any], list[str]]:
    former = served_containers(endpoint, region=region)[0]
    name, _ = image_name(former)
    image: Mapping[str, Any] = {"uri": result.image}
    kept = {variable: str(value) for variable, value in former.environment.items()}
    notes = []
    if not result.image:
        assert former.image.dlc is not None
        image = {"dlc": {name: each for name, each in asdict(former.image.dlc).items() if each}}
    elif f"/{name}:" not in result.image:
        # Those of the former server's start script; the rest keeps any server from calling out.
        lost = {option: value for option, value in kept.items() if option.startswith("SM_")}
        kept = {option: value for option, value in kept.items() if option not in lost}
        if lost:
            notes.append(
                f"Left out, because {name} reads them and the new image does not: "
                + ", ".join(f"{variable}={value}" for variable, value in lost.items())
                + ". In AWS's LMI images such options are named OPTION_..., as "
                "OPTION_MAX_MODEL_LEN and OPTION_TENSOR_PARALLEL_DEGREE."
            )
    container = {
        "image": dict(image),
        "data": {"s3_prefix": result.model_data},
        "environment": kept | dict(result.environment),
    }
    values: dict[Place, Any] = {(*here, "hugging_face"): YamlEntry("containers", [container])}
    if endpoint.network_isolation is None:
        values[(*here, "network_isolation")] = True  # as it was
    notes.append(
        "What followed from the lock file no longer does: whether the model fits, how many "
        "requests it holds, time-outs by its size. Compare with low-latency plan before you "
        "deploy, and state model_data_download_timeout and startup_health_check_timeout. The "
        "model's licence holds for the optimized one, too."
    )
    return values, notes


def _compiled_for(result: OptimizedModel) -> Iterator[str]:
    """What has to be compiled again, and when."""
    if "Compilation" not in result.optimizations:
        return
    facts = instance_facts(result.instance_type)
    if facts is None or facts.accelerator == "nvidia":
        yield (
            f"Compiled by TensorRT-LLM for the GPUs of {result.instance_type}: another GPU or "
            "another image needs another job."
        )
        return
    yield (
        f"Compiled by the Neuron SDK for {result.instance_type}: another instance type, number of "
        "cores (OPTION_TENSOR_PARALLEL_DEGREE), sequence length or batch size, and another SDK than "
        "the image's, need another job. Nothing is compiled when an instance starts."
    )
