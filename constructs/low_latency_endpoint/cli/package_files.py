"""What ``low-latency package`` writes: template, assets, manifest and README."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ..errors import LowLatencyEndpointError
from ..settings import Settings, load_settings
from ..settings.breach import path_of
from ..settings.variants import all_containers

_FLAGS = Path(__file__).with_name("init_templates") / "cdk.json"
_SYNTHESIS = "low_latency_endpoint.pattern.packaged"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a zip's first moment: the same files are the same bytes
_NAMED = {"RoleName", "ManagedPolicyName", "UserName", "GroupName", "InstanceProfileName"}


def write_package(settings: Path, output: Path, bucket: str | None, prefix: str) -> Iterator[str]:
    """Synthesise, and write the package; gives a line for each file.

    Raises
    ------
    SettingsError
        For mistakes in the settings.
    LowLatencyEndpointError
        When synthesis fails, needs a lookup, or an image would have to be built.
    """
    loaded = load_settings(settings)
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise typer.BadParameter(f"{output} is there, and is no empty folder")
    _refuse_images_to_build(loaded)
    with tempfile.TemporaryDirectory() as folder:
        assembly = Path(folder, "cdk.out")
        _synthesise(
            {
                "settings": str(settings.absolute()),
                "folder": str(assembly),
                "context": _context(settings.absolute().parent),
                "bucket": bucket,
                "prefix": prefix,
            }
        )
        yield from _write(assembly, loaded, output, bucket, prefix)


def _refuse_images_to_build(settings: Settings) -> None:
    for key, endpoint in settings.endpoints.items():
        for place, container in all_containers(endpoint):
            if container.image.asset:
                raise LowLatencyEndpointError(
                    f"{path_of(('endpoints', key, *place))}.image: an image that is built at "
                    "deployment cannot be in a package. Build it, push it, and name it with ecr "
                    "or uri."
                )


def _context(folder: Path) -> dict[str, Any]:
    own = folder / "cdk.json"
    flags = json.loads((own if own.exists() else _FLAGS).read_text(encoding="utf-8"))
    looked_up = folder / "cdk.context.json"
    found = json.loads(looked_up.read_text(encoding="utf-8")) if looked_up.exists() else {}
    return {**flags.get("context", {}), **found}


def _synthesise(request: dict[str, Any]) -> None:
    """In a process of its own: the command line loads no CDK."""
    done = subprocess.run(
        [sys.executable, "-m", _SYNTHESIS],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    path = Path(request["folder"], "manifest.json")
    manifest = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if manifest.get("missing"):  # then what stands for the VPC may fail the CDK's validation
        raise LowLatencyEndpointError(
            "The VPC has to be looked up first, with credentials: `cdk synth` in the app's folder "
            "writes cdk.context.json, which is read from beside the settings file."
        )
    if done.returncode:
        raise LowLatencyEndpointError(done.stderr.strip() or done.stdout.strip())


def _write(
    assembly: Path, settings: Settings, output: Path, bucket: str | None, prefix: str
) -> Iterator[str]:
    (template_path,) = assembly.glob("*.template.json")
    (manifest_path,) = assembly.glob("*.assets.json")
    template = json.loads(template_path.read_text(encoding="utf-8"))
    files = json.loads(manifest_path.read_text(encoding="utf-8"))["files"]
    assets: dict[str, str] = {}
    (output / "assets").mkdir(parents=True, exist_ok=True)
    for each in files.values():
        source = assembly / each["source"]["path"]
        if source == template_path:
            continue
        (destination,) = each["destinations"].values()
        name = destination["objectKey"].removeprefix(prefix)
        target = output / "assets" / name
        if each["source"]["packaging"] == "zip":
            _zip(source, target)
        else:
            target.write_bytes(source.read_bytes())
        assets[f"assets/{name}"] = destination["objectKey"]
        yield f"wrote {target}"
    capability = "CAPABILITY_NAMED_IAM" if _names_roles(template) else "CAPABILITY_IAM"
    manifest = {
        "stack": settings.stack_name,
        "region": settings.region,
        "account": settings.account,
        "template": "template.json",
        "capabilities": [capability],
        "parameters": {"AssetBucket": bucket},
        "assets": assets,
    }
    readme = _readme(settings, bucket, prefix, capability)
    for name, text in {
        "template.json": json.dumps(template, indent=1) + "\n",
        "manifest.json": json.dumps(manifest, indent=2) + "\n",
        "README.md": readme,
    }.items():
        (output / name).write_text(text, encoding="utf-8")
        yield f"wrote {output / name}"
    yield f"How to deploy it: {output / 'README.md'}"


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16  # Lambda's own user has to read it
            archive.writestr(entry, path.read_bytes())


def _names_roles(template: dict[str, Any]) -> bool:
    """Whether IAM gets names of ours, which takes the greater capability."""
    return any(
        each["Type"].startswith("AWS::IAM::") and _NAMED & set(each.get("Properties", {}))
        for each in template["Resources"].values()
    )


def _readme(settings: Settings, bucket: str | None, prefix: str, capability: str) -> str:
    where = f" in {settings.region}" if settings.region else ""
    region = f" --region {settings.region}" if settings.region else ""
    account = f" Its account is {settings.account}." if settings.account else ""
    return f"""# {settings.stack_name}

A CloudFormation stack with low-latency SageMaker endpoints: {", ".join(settings.endpoints)}. To
deploy it you need the AWS CLI, and a bucket{where} for its assets; neither the CDK nor its
bootstrap.{account}

```console
BUCKET={bucket or "your-bucket"}
aws s3 cp assets/ "s3://$BUCKET/{prefix}" --recursive{region}
aws cloudformation deploy --template-file template.json --stack-name {settings.stack_name} \\
  --parameter-overrides "AssetBucket=$BUCKET" --capabilities {capability} \\
  --s3-bucket "$BUCKET" --s3-prefix "{prefix}templates"{region}
```

The same commands update it. The assets stay in the bucket as long as the stack is there.
"""
