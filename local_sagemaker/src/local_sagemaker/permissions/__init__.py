"""IAM rights: who may do what, judged by the policies that stand at that moment.

`evaluator` is IAM's logic, pure; `conditions` the patterns and operators of policies.
"""
