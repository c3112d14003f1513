"""What ``plan --against`` says of a changed lock file, whose digests anybody can calculate."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.hugging_face.lock_file import lock_text
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
from tests.pinned_models import EMBEDDER, QWEN

from .conftest import Check, Checkout

SETTINGS = """\
stack_name: Stack
region: us-east-1
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  chat:
    hugging_face: {model: Qwen/Qwen3-8B}
    instance_type: ml.g6.2xlarge
    latency: {ttft_p95: 1s}
    tokens: {input: 512, output: 128}
"""
CONFIG, WEIGHTS, TOKENIZER = QWEN.files
PICKLE = PinnedFile("pytorch_model.bin", 100, "a" * 64)
CODE = PinnedFile("modeling_evil.py", 100, "b" * 64)


@pytest.fixture
def changed(check: Check, checkout: Checkout) -> Any:
    """What becomes of the file's stack, and the verdict, where another lock file is in its place."""
    checkout.commit({"endpoint.yaml": SETTINGS, "models.lock.yaml": lock_text([QWEN])})

    def run(*models: PinnedModel) -> tuple[dict[str, Any], dict[str, Any]]:
        (checkout.folder / "models.lock.yaml").write_text(lock_text(models), encoding="utf-8")
        chosen = ("--fail-on=refused", "--fail-on=new-warning")
        data = json.loads(check("main", *chosen, "--json").out)
        (file,) = data["files"]
        (difference,) = file["differences"]
        assert difference["setting"] == "endpoints.chat.hugging_face.lock"
        return file, data["verdict"]

    return run


def test_other_bytes_at_the_same_commit_are_refused(changed: Any) -> None:
    for other in (replace_file(WEIGHTS, sha256="f" * 64), replace_file(TOKENIZER, size=5)):
        file, verdict = changed(other)
        assert file["effect"] == "refused"
        assert "at the same commit 999999999999" in said_of_lock(file)
        assert {each["limit"] for each in verdict["because"]} == {"refused"}


def said_of_lock(file: dict[str, Any]) -> str:
    """What the rows of the stack say of the lock file."""
    texts = (row["what"] for row in file["resources"])
    return "\n".join(text for text in texts if "pin of" in text or "same commit" in text)


def replace_file(file: PinnedFile, **changes: Any) -> PinnedModel:
    other = file._replace(**changes)
    return replace(QWEN, files=tuple(other if each == file else each for each in QWEN.files))


def test_another_commit_is_said_with_its_files(changed: Any) -> None:
    other = replace_file(WEIGHTS, sha256="f" * 64)
    file, verdict = changed(replace(other, commit="8" * 40))
    assert file["effect"] == "deployment"
    assert said_of_lock(file) == (
        "another pin of Qwen/Qwen3-8B: commit 999999999999 -> 888888888888; "
        "files with other content: model.safetensors"
    )
    assert not verdict["fails"]


def test_files_that_run_code_are_a_warning(changed: Any) -> None:
    file, verdict = changed(replace(QWEN, files=(*QWEN.files, PICKLE, CODE)))
    what = said_of_lock(file)
    assert "files added: pytorch_model.bin, modeling_evil.py" in what
    assert "pickle files: none -> pytorch_model.bin" in what
    (because,) = verdict["because"]
    assert because["limit"] == "new-warning"
    assert because["what"].endswith(
        "files that run code when they are loaded: pytorch_model.bin, modeling_evil.py"
    )


CARRIERS = (
    *("code/requirements.txt", "a.whl", "m.joblib", "m.h5", "serving.properties", "k.so"),
    *("saved_model.pb", "x.npy", "x.npz", "chat_template.jinja", "model.plan", "M.PY", "m.PT"),
)


@pytest.mark.parametrize("path", CARRIERS)
def test_what_is_installed_or_names_code_is_a_warning(changed: Any, path: str) -> None:
    file = PinnedFile(path, 100, "c" * 64)
    _, verdict = changed(replace(QWEN, files=(*QWEN.files, file)))
    assert [because["limit"] for because in verdict["because"]] == ["new-warning"]
    assert verdict["because"][0]["what"].endswith(path)


def test_other_content_of_code_is_a_warning(changed: Any, checkout: Checkout) -> None:
    with_code = replace(QWEN, files=(*QWEN.files, CODE))
    checkout.commit({"models.lock.yaml": lock_text([with_code])})
    other = CODE._replace(sha256="d" * 64)
    _, verdict = changed(replace(QWEN, files=(*QWEN.files, other), commit="8" * 40))
    assert [because["limit"] for because in verdict["because"]] == ["new-warning"]
    assert "modeling_evil.py" in verdict["because"][0]["what"]


def test_another_host_of_the_hub_is_a_warning(check: Check, checkout: Checkout) -> None:
    checkout.commit({"endpoint.yaml": SETTINGS, "models.lock.yaml": lock_text([QWEN])})
    stated = "{model: Qwen/Qwen3-8B, hub_endpoint: https://hub.example.com}"
    text = SETTINGS.replace("{model: Qwen/Qwen3-8B}", stated)
    (checkout.folder / "endpoint.yaml").write_text(text, encoding="utf-8")
    answer = check("main", "--fail-on=new-warning")
    assert (answer.code, "token of the Hub goes to another host" in answer.out) == (1, True)


def test_the_usual_host_of_the_hub_is_no_warning(check: Check, checkout: Checkout) -> None:
    own = "containers: [{image: {ecr: {repository: chat}}, data: {s3: s3://bucket/m.tar.gz}}]"
    text = SETTINGS.replace("hugging_face: {model: Qwen/Qwen3-8B}", own)
    checkout.commit({"endpoint.yaml": text, "models.lock.yaml": lock_text([QWEN])})
    (checkout.folder / "endpoint.yaml").write_text(SETTINGS, encoding="utf-8")
    assert "token of the Hub" not in check("main", "--fail-on=new-warning").out


OWN = replace(
    QWEN,
    files=(*QWEN.files, CODE),
    config={**QWEN.config, "auto_map": {"AutoModelForCausalLM": "modeling_evil.X"}},
)
_SWITCH_ON = "environment: {SM_VLLM_TRUST_REMOTE_CODE: 'true'}"
OFF_AND_ON = {
    "the setting": ("", ", trust_remote_code: false", ", trust_remote_code: true"),
    "the server's variable": (
        *("", ", trust_remote_code: false"),
        f", trust_remote_code: false, {_SWITCH_ON}",
    ),
    "of a variant": (
        "    variants: {b: {weight: 1, hugging_face: {model: Qwen/Qwen3-8B, "
        "trust_remote_code: false}}}\n",
        *(", trust_remote_code: false", ", trust_remote_code: true"),
    ),
}


@pytest.mark.parametrize("case", OFF_AND_ON)
def test_code_that_begins_to_run_is_a_warning(check: Check, checkout: Checkout, case: str) -> None:
    further, off, on = OFF_AND_ON[case]
    text = SETTINGS.replace("Qwen3-8B}", f"Qwen3-8B{off}}}") + further
    checkout.commit({"endpoint.yaml": text, "models.lock.yaml": lock_text([OWN])})
    front, _, end = text.rpartition(off)
    (checkout.folder / "endpoint.yaml").write_text(f"{front}{on}{end}", encoding="utf-8")
    verdict = json.loads(check("main", "--fail-on=new-warning", "--json").out)["verdict"]
    texts = [because["what"] for because in verdict["because"]]
    said = "the server begins to run the code of Qwen/Qwen3-8B: modeling_evil.py"
    assert any(text.endswith(said) for text in texts), verdict


def test_a_new_auto_map_begins_to_run_code(changed: Any, checkout: Checkout) -> None:
    """Of a model whose files were there, and which was trusted when nothing asked for them."""
    trusted = SETTINGS.replace("Qwen3-8B}", "Qwen3-8B, trust_remote_code: true}")
    former = replace(QWEN, files=OWN.files)
    checkout.commit({"endpoint.yaml": trusted, "models.lock.yaml": lock_text([former])})
    _, verdict = changed(OWN)
    assert "begins to run the code" in verdict["because"][0]["what"]


def test_another_licence_is_a_warning(changed: Any) -> None:
    file, verdict = changed(replace(QWEN, license="mit"))
    assert (file["effect"], verdict["fails"]) == ("in place", True)
    assert "licence apache-2.0 -> mit" in said_of_lock(file)
    assert "apache-2.0 -> mit" in verdict["because"][0]["what"]


def test_a_pin_of_another_model_changes_nothing(changed: Any) -> None:
    file, verdict = changed(QWEN, EMBEDDER)
    assert (file["effect"], file["resources"]) == ("nothing", [])
    assert not verdict["fails"]
