"""The load test's page: one HTML file with its charts and their library inside."""
