"""What a release replaces in deployed stacks; `make release-dry-run` makes everything else of one."""
