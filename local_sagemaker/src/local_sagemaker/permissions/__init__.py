"""IAM rights: who may do what, judged by the policies that stand at that moment.

`evaluator` is IAM's logic, pure; `conditions` the patterns and operators of policies. `actions` (with its
table `actions.txt`) says which rights an operation needs, `requests` which operation a request is,
`principals` who makes it and with which policies. `judge` brings them together with the policies of
resources and VPC endpoints; `gate` does so for the main URL, `invoking` for SageMaker Runtime. What
services ask of roles stands in `functions`, `tasks`, `hosting` and `alarms`.
"""
