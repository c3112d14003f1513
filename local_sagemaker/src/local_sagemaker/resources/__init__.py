"""The emulated types of resources: a table, and code for what a table cannot say."""
