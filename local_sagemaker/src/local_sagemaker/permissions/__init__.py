"""IAM rights: who may do what, judged by the policies that stand at that moment.

`evaluator` is IAM's logic, pure. `requests` says which operation a request is and (by the table
`actions.txt`) which rights it needs, `principals` who makes it and with which policies. `judge` brings
them together with the policies of resources and VPC endpoints; `gate` does so for the main URL and
SageMaker Runtime. What services ask of roles stands in `service_roles`.
"""
