"""A load test's generator on ECS Fargate, in the client zones: started, asked, stopped."""
