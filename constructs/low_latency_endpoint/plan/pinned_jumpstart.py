"""A model of SageMaker JumpStart as a lock file pins it: its files, and the image that serves them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, cached_property
from typing import Any

from ..errors import ConfigurationError
from .hugging_face_rules import INSTANCE_TYPE_NEEDED, LOCK_EDITED, LOCK_FILE, NOT_PINNED
from .image_names import dlc_account
from .jumpstart_rules import JUMPSTART_EULA, JUMPSTART_REGION, JUMPSTART_TYPE
from .pinned_model import VERSION, digest_of, matching_text, stated_text
from .tables import rows

_REGISTRY = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z.-]+/"
    r"(?P<repository>[\w./-]+):(?P<tag>[\w.-]+)",
    re.ASCII,
)
_MODEL = re.compile(r"[A-Za-z0-9][\w.-]{0,199}", re.ASCII)
# Without what a policy would take for a wildcard or a variable.
_KEY = re.compile(r"[\w.+=@,-]+(?:/[\w.+=@,-]+)*/?", re.ASCII)
_ANY_IMAGE = re.compile(r"[^\s\0]{1,255}")
_TIMEOUTS = ("download_timeout", "start_timeout")


@cache
def jumpstart_regions() -> frozenset[str]:
    """Regions in which JumpStart has buckets."""
    return frozenset(row["region"] for row in rows("jumpstart_regions"))


def check_jumpstart_region(region: str, where: str = "") -> None:
    """Raise where JumpStart has no bucket.

    Raises
    ------
    ConfigurationError
        LLE397.
    """
    if region not in jumpstart_regions():
        allowed = ", ".join(sorted(jumpstart_regions()))
        raise JUMPSTART_REGION.error(got=region, allowed=allowed, where=where)


def jumpstart_bucket(region: str, *, gated: bool = False) -> str:
    """AWS's bucket in a Region.

    Examples
    --------
    >>> jumpstart_bucket("us-east-1"), jumpstart_bucket("eu-west-1", gated=True)
    ('jumpstart-cache-prod-us-east-1', 'jumpstart-private-cache-prod-eu-west-1')
    """
    return f"jumpstart-{'private-' if gated else ''}cache-prod-{region}"


def bucket_url(region: str) -> str:
    """Where the public bucket of a Region is over HTTPS."""
    # The domains of the partitions, as botocore's partitions.json has them.
    domain = {
        "cn": "amazonaws.com.cn",
        "eusc-de": "amazonaws.eu",
        "us-iso": "c2s.ic.gov",
        "us-isob": "sc2s.sgov.gov",
        "us-isof": "csp.hci.ic.gov",
        "eu-isoe": "cloud.adc-e.uk",
    }.get(region.rsplit("-", 2)[0], "amazonaws.com")
    return f"https://{jumpstart_bucket(region)}.s3.{region}.{domain}"


@dataclass(frozen=True, kw_only=True)
class JumpStartServing:
    """How a model is served on some of its instance types.

    Parameters
    ----------
    instance_types : tuple of str
    image : str
        URI in the Region that it was read in.
    artifact : str
        Key in JumpStart's bucket: an archive, or with ``/`` at its end a prefix. On Inferentia and
        Trainium what lies there may be compiled for the type already.
    environment : mapping of str to str
        Of the container.
    """

    instance_types: tuple[str, ...]
    image: str
    artifact: str
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def deep_learning_container(self) -> tuple[str, str] | None:
        """Repository and tag, where it is one of AWS's Deep Learning Containers.

        Those have the same name and tag in every Region, in accounts that are known. Any other
        image is known in the Region alone that it was read in.
        """
        parts = _REGISTRY.fullmatch(self.image)
        if parts is None or dlc_account(parts["region"]) != parts["account"]:
            return None
        return parts["repository"], parts["tag"]


@dataclass(frozen=True, kw_only=True)
class PinnedJumpStartModel:
    """One model of JumpStart in a lock file.

    Parameters
    ----------
    model : str
        Its ID: ``meta-textgeneration-llama-3-1-8b-instruct``.
    version : str
        Never with an asterisk: ``2.0.0``.
    region : str
        Whose catalogue was read.
    servings : tuple of JumpStartServing
        Each with its instance types; no type twice.
    gated : bool
        Whether its files are in the bucket that asks for the acceptance of an agreement.
    eula : str, optional
        Key of the end-user license agreement in the public bucket.
    default_instance_type : str, optional
        What JumpStart would run it on.
    network_isolation : bool
        Whether it serves without a network.
    download_timeout, start_timeout : int, optional
        What JumpStart deploys it with, in seconds; by default SageMaker's own.

    Examples
    --------
    >>> pinned = PinnedJumpStartModel(
    ...     model="acme-tiny", version="1.0.0", region="us-east-1", eula="terms/acme.txt",
    ...     servings=(JumpStartServing(
    ...         instance_types=("ml.g5.xlarge",), artifact="acme/tiny/v1.0.0/",
    ...         image="763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.29.0-cu124"),))
    >>> pinned.requires_eula, pinned.eula_url
    (True, 'https://jumpstart-cache-prod-us-east-1.s3.us-east-1.amazonaws.com/terms/acme.txt')
    >>> pinned.served_on(["ml.g5.xlarge"], accept_eula=True).deep_learning_container
    ('djl-inference', '0.29.0-cu124')
    """

    model: str
    version: str
    region: str
    servings: tuple[JumpStartServing, ...]
    gated: bool = False
    eula: str | None = None
    default_instance_type: str | None = None
    network_isolation: bool = False
    download_timeout: int | None = None
    start_timeout: int | None = None

    @property
    def requires_eula(self) -> bool:
        """Whether an agreement is to be accepted.

        As SageMaker's SDK has it: ``is_gated_model``, sagemaker-core 2.27.0, jumpstart/types.py.
        """
        return self.gated or self.eula is not None

    @property
    def eula_url(self) -> str:
        """Where the agreement can be read."""
        return f"{bucket_url(self.region)}/{self.eula}" if self.eula else "the model's page"

    def timeout(self, name: str) -> timedelta | None:
        """What JumpStart deploys it with, by the setting's name."""
        seconds = getattr(self, name) if name in _TIMEOUTS else None
        return None if seconds is None else timedelta(seconds=seconds)

    def served_on(
        self, instance_types: Sequence[str], *, accept_eula: bool, where: str = ""
    ) -> JumpStartServing:
        """How it is served on instance types, which have to be served alike.

        Raises
        ------
        ConfigurationError
            LLE396 for an agreement that is not accepted, LLE315 for a type that it is not served
            on, LLE314 for types that are served differently.
        """
        if self.requires_eula and not accept_eula:
            raise JUMPSTART_EULA.error(
                got=f"{self.model} {self.version} without accept_eula",
                allowed=f"accept_eula, after reading {self.eula_url}",
                where=where,
            )
        by_type = {name: each for each in self.servings for name in each.instance_types}
        found = []
        for name in instance_types:
            if name not in by_type:
                raise JUMPSTART_TYPE.error(
                    got=f"{self.model} {self.version} on {name}",
                    allowed=", ".join(sorted(by_type)),
                    where=where,
                )
            found.append(by_type[name])
        if len({id(each) for each in found}) != 1:
            raise INSTANCE_TYPE_NEEDED.error(
                got=", ".join(instance_types) or f"{self.model} without an instance type",
                allowed="types that one container serves alike" if found else "instance_type",
                where=where,
            )
        return found[0]

    def contents(self) -> dict[str, Any]:
        """What the lock file says of it, without the digest."""
        stated = {
            "version": self.version,
            "region": self.region,
            "gated": self.gated,
            "eula": self.eula,
            "default_instance_type": self.default_instance_type,
            "network_isolation": self.network_isolation,
            **{name: getattr(self, name) for name in _TIMEOUTS},
            "servings": [
                {
                    "instance_types": list(each.instance_types),
                    "image": each.image,
                    "artifact": each.artifact,
                    "environment": dict(each.environment),
                }
                for each in self.servings
            ],
        }
        return {key: value for key, value in stated.items() if value is not None}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that the lock file says of it."""
        return digest_of(self.model, self.contents())


def jumpstart_document(models: Iterable[PinnedJumpStartModel]) -> dict[str, Any]:
    """What a lock file's section holds, in order."""
    return {
        each.model: {**each.contents(), "digest": each.digest}
        for each in sorted(models, key=lambda pinned: pinned.model)
    }


def jumpstart_models_of(
    document: Any, where: str, *, without: Collection[str] = ()
) -> dict[str, PinnedJumpStartModel]:
    """The models that a lock file's document holds, by ID; none where it has no section of them.

    ``document``, ``where`` and ``without`` are as for :func:`.pinned_model.models_of`.

    Raises
    ------
    ConfigurationError
        LLE343 for what is no lock file of this form, LLE345 for a model that somebody changed.
    """
    section = document.get("jumpstart", {}) if isinstance(document, Mapping) else None
    if not isinstance(section, Mapping) or document.get("version") != VERSION:
        raise LOCK_FILE.error(
            got="something else",
            allowed=f"version: {VERSION}, and under jumpstart models by ID",
            where=where,
        )
    return {
        str(name): _model(str(name), stated, where)
        for name, stated in section.items()
        if str(name) not in without
    }


def pinned_jumpstart_in(
    models: Mapping[str, PinnedJumpStartModel], model: str, where: str
) -> PinnedJumpStartModel:
    """One of the models of a lock file.

    Raises
    ------
    ConfigurationError
        LLE344 when it is not there.
    """
    if model not in models:
        raise NOT_PINNED.error(
            got=model,
            allowed=", ".join(models) or "none of JumpStart so far",
            where=where,
            fix=f"Run low-latency pin --jumpstart {model}, which needs the network; synthesis "
            "reads the lock file alone.",
        )
    return models[model]


def _model(name: str, stated: Any, where: str) -> PinnedJumpStartModel:
    try:
        pinned = pinned_jumpstart(name, {k: v for k, v in stated.items() if k != "digest"})
        digest = pinned.digest
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise _edited(name, f"not as pinned: {problem}", where) from None
    if stated.get("digest") != digest:
        raise _edited(name, "another digest than that of its contents", where)
    return pinned


def pinned_jumpstart(name: str, stated: Mapping[str, Any]) -> PinnedJumpStartModel:
    """A model of what is stated of it, held against the forms of names, keys and images.

    Raises
    ------
    KeyError, TypeError, ValueError
        For what no catalogue has.
    """
    servings = tuple(
        JumpStartServing(
            instance_types=tuple(stated_text(each) for each in serving["instance_types"]),
            image=matching_text(_ANY_IMAGE, serving["image"]),
            artifact=_key(serving["artifact"]),
            environment={stated_text(k): stated_text(v) for k, v in serving["environment"].items()},
        )
        for serving in stated["servings"]
    )
    eula, default = stated.get("eula"), stated.get("default_instance_type")
    return PinnedJumpStartModel(
        model=matching_text(_MODEL, name),
        version=matching_text(re.compile(r"[\w.+-]{1,50}", re.ASCII), stated["version"]),
        region=matching_text(re.compile(r"[a-z0-9-]{1,30}"), stated["region"]),
        servings=servings,
        gated=_flag(stated["gated"]),
        eula=None if eula is None else _key(eula),
        default_instance_type=None if default is None else stated_text(default),
        network_isolation=_flag(stated["network_isolation"]),
        **{name: _seconds(stated.get(name)) for name in _TIMEOUTS},
    )


def _edited(name: str, got: str, where: str) -> ConfigurationError:
    return LOCK_EDITED.error(
        got=f"{name}: {got}",
        allowed="what low-latency pin --jumpstart wrote",
        where=where,
        fix=f"Run low-latency pin --jumpstart {name} again; what it writes is not for editing.",
    )


def _key(value: Any) -> str:
    if ".." in matching_text(_KEY, value).split("/"):
        raise ValueError(f"{value!r}")
    return str(value)


def _seconds(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ValueError(f"{value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r}")
    return value
