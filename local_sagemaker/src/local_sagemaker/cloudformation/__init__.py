"""CloudFormation, written anew: moto's engine does not update, replace or roll back."""
