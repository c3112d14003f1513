"""A model's repository on the fake Hub: commits, branches, and what the API says of them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

# What the Hub's default .gitattributes keeps in Git LFS, and what is too large for plain git:
# https://huggingface.co/docs/hub/repositories-getting-started ("files larger than 10MB").
_LFS = (".safetensors", ".bin", ".gguf", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".pkl")
_LARGE = 10_000_000


@dataclass(frozen=True, kw_only=True)
class FakeModel:
    """A model that a :class:`FakeHub` starts with.

    Parameters
    ----------
    files : mapping of str to bytes
        Of the newest commit of ``main``, by path.
    history : tuple of mappings
        The commits of ``main`` before it, oldest first.
    branches : mapping of str to mapping
        Further branches or tags, each one commit.
    gated : {"manual", "auto", False}
        Whether its files are for accounts whose request was granted. What the API says of it is
        for everyone.
    private : bool
        Whether nobody else learns that it exists.
    tokens : tuple of str
        Of the accounts that may read it where it is gated or private.
    card : mapping
        The front matter of its README: ``{"license": "mit"}``.
    pipeline_tag, library_name : str, optional
    """

    files: Mapping[str, bytes]
    history: tuple[Mapping[str, bytes], ...] = ()
    branches: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    gated: Literal["manual", "auto", False] = False
    private: bool = False
    tokens: tuple[str, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)
    pipeline_tag: str | None = None
    library_name: str | None = None


class Repository:
    """A model's commits while the Hub runs. Tests may change both mappings."""

    def __init__(self, name: str, model: FakeModel) -> None:
        self.name = name
        self.model = model
        self.commits: dict[str, dict[str, bytes]] = {}
        self.branches: dict[str, str] = {}
        for files in (*model.history, model.files):
            self.commit(files)
        for branch, files in model.branches.items():
            self.commit(files, branch)

    def commit(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Let a branch have other files; gives the commit."""
        said = [self.name, len(self.commits), {path: git_blob_id(files[path]) for path in files}]
        commit = hashlib.sha1(json.dumps(said, sort_keys=True).encode()).hexdigest()
        self.commits[commit] = dict(files)
        self.branches[branch] = commit
        return commit

    def resolved(self, revision: str) -> str | None:
        """The commit that a branch, a tag, or a commit is."""
        commit = self.branches.get(revision, revision)
        return commit if commit in self.commits else None

    def blob(self, sha256: str) -> bytes | None:
        """The bytes of an LFS file."""
        for files in list(self.commits.values()):
            for content in files.values():
                if hashlib.sha256(content).hexdigest() == sha256:
                    return content
        return None

    def information(self, commit: str, blobs: bool) -> dict[str, Any]:
        """What ``/api/models`` says: huggingface_hub 2.4.0, ``ModelInfo`` and ``RepoSibling``."""
        files = self.commits[commit]
        stated: dict[str, Any] = {
            "_id": hashlib.sha1(self.name.encode()).hexdigest()[:24],
            "id": self.name,
            "modelId": self.name,
            "sha": commit,
            "private": self.model.private,
            "gated": self.model.gated,
            "disabled": False,
            "tags": [],
            "siblings": [
                {"rfilename": path, **(_facts(path, content) if blobs else {})}
                for path, content in sorted(files.items())
            ],
            "cardData": dict(self.model.card) or None,
            "pipeline_tag": self.model.pipeline_tag,
            "library_name": self.model.library_name,
            "config": _config(files),
            "safetensors": _safetensors(files),
        }
        return {key: value for key, value in stated.items() if value is not None}

    def tree(self, commit: str) -> list[dict[str, Any]]:
        """What ``/tree`` says when it is asked for all folders: huggingface_hub's ``RepoFile``."""
        listed = []
        for path, content in sorted(self.commits[commit].items()):
            facts = _facts(path, content)
            entry = {"type": "file", "path": path, "size": len(content), "oid": facts["blobId"]}
            if "lfs" in facts:
                lfs = facts["lfs"]
                entry["lfs"] = {"oid": lfs["sha256"], **lfs}
                entry["lfs"].pop("sha256")
            listed.append(entry)
        return listed


def git_blob_id(content: bytes) -> str:
    """The SHA-1 that git has of a file: the only hash that the Hub has of a small one."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_lfs(path: str, content: bytes) -> bool:
    """Whether the Hub keeps a file in Git LFS, and serves it from its CDN."""
    return path.endswith(_LFS) or len(content) > _LARGE


def _facts(path: str, content: bytes) -> dict[str, Any]:
    if not is_lfs(path, content):
        return {"size": len(content), "blobId": git_blob_id(content)}
    sha256 = hashlib.sha256(content).hexdigest()
    # What git itself holds of an LFS file: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
    pointer = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {len(content)}\n"
    ).encode()
    lfs = {"sha256": sha256, "size": len(content), "pointerSize": len(pointer)}
    return {"size": len(content), "blobId": git_blob_id(pointer), "lfs": lfs}


def _config(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    with contextlib.suppress(KeyError, ValueError, AttributeError):
        stated = json.loads(files["config.json"])
        return {key: stated[key] for key in ("architectures", "model_type") if key in stated}
    return None


def _safetensors(files: Mapping[str, bytes]) -> dict[str, Any] | None:
    """How many parameters there are of each type, as the files' own headers say."""
    parameters: dict[str, int] = {}
    for path, content in files.items():
        if path.endswith(".safetensors"):
            try:
                (length,) = struct.unpack_from("<Q", content)
                for name, tensor in json.loads(content[8 : 8 + length]).items():
                    if name != "__metadata__":
                        kind = tensor["dtype"]
                        parameters[kind] = parameters.get(kind, 0) + math.prod(tensor["shape"])
            except (ValueError, KeyError, TypeError, AttributeError, struct.error):
                return None  # bytes of a test's: the Hub says nothing of a file it cannot parse
    return {"parameters": parameters, "total": sum(parameters.values())} if parameters else None
