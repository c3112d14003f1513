"""Lambda's code signing configurations: moto keeps a function's, whatever it names.

Source: Lambda developer guide, "Using code signing to verify code integrity with Lambda": code that
is not signed is refused where the policy is Enforce. Nothing is signed here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from moto.awslambda import urls
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.models import LambdaBackend
from moto.awslambda.responses import LambdaResponse

from .replacing import around


class _NotFound(LambdaClientError):
    code = 404


def _configurations(backend: Any) -> dict[str, dict[str, Any]]:
    """Those of an account and Region by their ARNs; a reset forgets them with all else."""
    made: dict[str, dict[str, Any]] = vars(backend).setdefault("code_signing_configurations", {})
    return made


def _stated(backend: Any, arn: str) -> dict[str, Any]:
    found = _configurations(backend).get(arn)
    if found is None:
        raise _NotFound(
            "CodeSigningConfigNotFoundException",
            "The specified code signing configuration does not exist.",
        )
    return found


def _check_signed(backend: Any, arn: str | None) -> None:
    if not arn:
        return
    policies = _stated(backend, arn)["CodeSigningPolicies"]
    if policies["UntrustedArtifactOnDeployment"] == "Enforce":
        raise LambdaClientError(
            "CodeVerificationFailedException",
            "The code signature failed one or more of the validation checks for signature mismatch "
            "or expiry, and the code signing policy is set to ENFORCE. Lambda blocks the deployment.",
        )


@around(LambdaBackend)
def create_function(original: Callable[..., Any], self: Any, spec: dict[str, Any]) -> Any:
    """Refuse what its configuration does not let in."""
    _check_signed(self, spec.get("CodeSigningConfigArn"))
    return original(self, spec)


@around(LambdaBackend)
def update_function_code(
    original: Callable[..., Any], self: Any, function_name: str, qualifier: str, body: Any
) -> Any:
    """Refuse what its configuration does not let in."""
    _check_signed(self, self.get_function(function_name).code_signing_config_arn)
    return original(self, function_name, qualifier, body)


def _create_code_signing_config(self: Any) -> tuple[int, dict[str, str], str]:
    name = f"csc-{uuid.uuid4().hex[:17]}"
    arn = f"arn:aws:lambda:{self.region}:{self.current_account}:code-signing-config:{name}"
    asked = self.json_body
    policies = {"UntrustedArtifactOnDeployment": "Warn", **(asked.get("CodeSigningPolicies") or {})}
    made = {
        "CodeSigningConfigId": name,
        "CodeSigningConfigArn": arn,
        "Description": asked.get("Description", ""),
        "AllowedPublishers": asked["AllowedPublishers"],
        "CodeSigningPolicies": policies,
        "LastModified": datetime.now(UTC).isoformat(),
    }
    _configurations(self.backend)[arn] = made
    return 201, {}, json.dumps({"CodeSigningConfig": made})


def _put_function_code_signing_config(self: Any) -> tuple[int, dict[str, str], str]:
    """Keep it: code that is deployed already is not looked at."""
    found, arn = _function(self), self.json_body["CodeSigningConfigArn"]
    _stated(self.backend, arn)
    found.code_signing_config_arn = arn
    return 200, {}, json.dumps(found.get_function_code_signing_config())


def _delete_function_code_signing_config(self: Any) -> tuple[int, dict[str, str], str]:
    _function(self).code_signing_config_arn = None
    return 204, {}, ""


def _function(response: Any) -> Any:
    return response.backend.get_function(unquote(response.path.rsplit("/", 2)[-2]))


LambdaResponse.create_code_signing_config = _create_code_signing_config
LambdaResponse.put_function_code_signing_config = _put_function_code_signing_config
LambdaResponse.delete_function_code_signing_config = _delete_function_code_signing_config
urls.url_paths["{0}/(?P<api_version>[^/]+)/code-signing-configs/?$"] = LambdaResponse.dispatch
