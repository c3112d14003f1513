"""Tests reach no real account, whatever the SDK's files on this machine hold."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

KEYS = "aws_access_key_id = AKIAREALREALREALREAL\naws_secret_access_key = real\n"
FILES = {".boto": "Credentials", ".aws/credentials": "default", ".aws/config": "default"}


@pytest.mark.parametrize("path", FILES)
def test_the_keys_of_a_home_folder_are_not_found(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / path).write_text(f"[{FILES[path]}]\n{KEYS}", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert boto3.Session().get_credentials() is None
