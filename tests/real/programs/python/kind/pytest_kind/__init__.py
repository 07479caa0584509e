"""Stands in for pytest-kind, which suites of other people use: the cluster runs already, and KUBECONFIG names it."""
