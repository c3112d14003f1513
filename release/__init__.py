"""What makes a release: both distributions built twice, their contents, notes, SBOM, upgrade page.

Only this repository uses it: it is in no wheel. `python -m release` names the steps,
`.github/workflows/release.yml` runs them, and `make release-dry-run` runs all of them that need no
network and no rights.
"""
