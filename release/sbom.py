"""A CycloneDX SBOM for each distribution: what it needs with all extras, as the pins have it.

Versions and hashes are those of ``requirements-dev.txt``, with which the tests ran. What `pip
install` brings to a user is what is newest within the ranges of the metadata.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.metadata import parse_email
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .installed import required
from .pins import DEVELOPMENT, pins_of
from .repository import LIBRARY, LOCAL_AWS, Project, Refused
from .wheels import metadata_of

#: Ours: built from the same commit, not pinned.
_OURS = {canonicalize_name(project.name) for project in (LIBRARY, LOCAL_AWS)}


def write_sbom(project: Project, wheel: Path, target: Path) -> int:
    """Write the SBOM of a wheel and say how many packages it names.

    Raises
    ------
    Refused
        When a package that the wheel needs has no pin.
    """
    metadata, _ = parse_email(metadata_of(wheel))
    lines = metadata.get("requires_dist", [])
    extras = frozenset(metadata.get("provides_extra", []))
    pinned = pins_of(DEVELOPMENT.read_text(encoding="utf-8"))
    names = set(required(lines, extras)) - _OURS
    if missing := sorted(names - set(pinned)):
        raise Refused(f"{wheel.name} needs what is not pinned: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "requirements.txt"
        chosen.write_text("".join(pinned[name].text for name in sorted(names)), encoding="utf-8")
        made = Path(folder) / "sbom.json"
        command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(chosen)]
        command += ["--output-reproducible", "--spec-version", "1.6", "--output-file", str(made)]
        # Ten seconds that judge what is rewritten below; the tests judge what is written.
        command.append("--no-validate")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"cyclonedx-py: {done.stderr.strip()}")
        sbom = json.loads(made.read_text(encoding="utf-8"))
    version = metadata["version"]
    direct = {canonicalize_name(Requirement(line).name) for line in lines}
    by_name = {}
    for each in sbom["components"]:
        # cyclonedx-py names components by their line, and describes them by it.
        by_name[canonicalize_name(each["name"])] = each["bom-ref"] = each["purl"]
        del each["description"]
    sbom["metadata"]["component"] = {
        "bom-ref": project.name,
        "type": "library",
        "name": project.name,
        "version": version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": f"pkg:pypi/{project.name}@{version}",
    }
    # What each of them needs in turn is not said: an entry without `dependsOn` would say nothing.
    own = sorted(by_name[name] for name in direct if name in by_name)
    sbom["dependencies"] = [{"ref": project.name, "dependsOn": own}]
    target.write_text(json.dumps(sbom, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return len(names)
