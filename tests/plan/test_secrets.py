"""Which environment variables look like secrets: names and values of many kinds."""

from __future__ import annotations

import pytest

from low_latency_endpoint.plan.secrets import looks_secret, secret_warning

RANDOM = "x7Kq2mP9vL4sT8wZ1nB6"  # of nobody's


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "hf_" + "a1B2" * 9),
        ("MODEL", "hf_" + "a1B2" * 9),  # the value alone
        ("ANYTHING", "AKIA" + "A1B2C3D4E5F6G7H8"),
        ("ANYTHING", "ASIA" + "A1B2C3D4E5F6G7H8"),
        ("ANYTHING", "-----BEGIN RSA PRIVATE KEY-----\nabc"),
        ("ANYTHING", "-----BEGIN PRIVATE KEY-----\nabc"),
        ("ANYTHING", "ghp_" + "a1B2" * 9),
        ("ANYTHING", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
        ("DATABASE", "postgres://app:hunter2@db.internal/models"),
        ("AWS_SECRET_ACCESS_KEY", RANDOM),
        ("DB_PASSWORD", "hunter2"),
        ("db_password", "hunter2"),
        ("dbPassword", "hunter2"),
        ("DB_PASSWORD", "hunter2 and more"),
        ("OPENAI_API_KEY", "whatever"),
        ("APIKEY", "whatever"),
        ("HUGGING_FACE_HUB_TOKEN", RANDOM),
        ("SIGNING_KEY", "whatever"),
        ("MY_KEY", RANDOM),
        ("AUTH", RANDOM),
    ],
)
def test_secrets_are_noticed_and_never_repeated(name, value):
    assert looks_secret(name, value)
    said = secret_warning(name, value)
    assert name in said
    assert value not in said
    assert "Secrets Manager" in said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TASK", "text-classification"),
        ("HF_MODEL_ID", "s3://models/llama/"),
        ("MAX_TOKENS", "512"),
        ("MAX_TOKEN_LENGTH", "4096"),
        ("EOS_TOKEN", "<|endoftext|>"),
        ("STOP_TOKEN", "stop-here-please"),
        ("HF_TOKENIZER", "bert-base-uncased"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("USE_AUTH_TOKEN", "true"),
        ("CACHE_KEY", "model"),
        ("PRIMARY_KEY", "request-and-model-and-more"),
        # The way that does not put it into the template.
        ("HF_TOKEN_SECRET_ARN", "arn:aws:secretsmanager:us-east-1:123456789012:secret:hf-AbCdEf"),
        ("SECRET_ID", "prod/hugging-face"),
        ("HF_TOKEN", "arn:aws:secretsmanager:us-east-1:123456789012:secret:hf-AbCdEf"),
        ("HF_TOKEN", "/prod/hugging-face/token"),
        ("HF_TOKEN", "{{resolve:secretsmanager:hf:SecretString:token}}"),
        ("PASSWORD_FILE", "run-secrets"),
        ("HF_TOKEN", ""),
        ("MODEL_URL", "https://models.internal:8443/a"),
        ("SHA", "0123456789abcdef0123456789abcdef01234567"),
    ],
)
def test_what_is_no_secret_is_left_alone(name, value):
    assert looks_secret(name, value) is None
    assert secret_warning(name, value) is None
