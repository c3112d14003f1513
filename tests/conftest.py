"""The same world for every test, however pytest was started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The tests start Node.js through jsii and the CDK CLI: the one of this virtual environment, which
# is first on the path only under `make test` or in an activated environment.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ.setdefault("JSII_RUNTIME_PACKAGE_CACHE", "enabled")

# No test may reach an account, not even one that forgets to ask for the local AWS.
for name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[name]
os.environ.update(
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
)
