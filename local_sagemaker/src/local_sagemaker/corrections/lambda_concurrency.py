"""Lambda's concurrency: moto lets everything be reserved and does not tell an account's limits."""

from __future__ import annotations

import json
from typing import Any

from flask import request
from moto.awslambda import urls
from moto.awslambda.exceptions import InvalidParameterValueException
from moto.awslambda.models import LambdaBackend
from moto.awslambda.responses import LambdaResponse

CONCURRENT_EXECUTIONS = "local_sagemaker.concurrent_executions"
"""Where a request's environment has the account's quota."""

_LEAST_UNRESERVED = 100
"""Source: Lambda API reference, "PutFunctionConcurrency". Accounts with a smaller quota cannot
reserve any: their users report a minimum of [10] or [50], the quota itself."""


def _quota() -> int:
    return int(request.environ[CONCURRENT_EXECUTIONS])


def _unreserved(backend: Any, but: str = "") -> int:
    """Give what is left of the quota, without the reservation of one function."""
    return _quota() - sum(
        int(each.reserved_concurrency or 0)
        for each in backend.list_functions() if each.function_name != but
    )


def apply() -> None:
    """Refuse what leaves too little unreserved, and answer GetAccountSettings."""
    put = LambdaBackend.put_function_concurrency

    def put_function_concurrency(self: Any, function_name: str, reserved_concurrency: str) -> str:
        name = self.get_function(function_name).function_name
        least = min(_LEAST_UNRESERVED, _quota())
        if _unreserved(self, but=name) - int(reserved_concurrency) < least:
            raise InvalidParameterValueException(
                "Specified ReservedConcurrentExecutions for function decreases account's "
                f"UnreservedConcurrentExecution below its minimum value of [{least}]."
            )
        return put(self, function_name, reserved_concurrency)

    def get_account_settings(self: Any) -> tuple[int, dict[str, str], str]:
        functions = self.backend.list_functions()
        return 200, {}, json.dumps({
            "AccountLimit": {
                "ConcurrentExecutions": _quota(),
                "UnreservedConcurrentExecutions": _unreserved(self.backend),
            },
            "AccountUsage": {"FunctionCount": len(functions)},
        })

    LambdaBackend.put_function_concurrency = put_function_concurrency
    LambdaResponse.get_account_settings = get_account_settings
    urls.url_paths["{0}/(?P<api_version>[^/]+)/account-settings/?$"] = LambdaResponse.dispatch
