"""What a Nacos holds, declared in Kubernetes: its namespaces, configurations, users and permissions.

`kinds` are the resources, `api` asks the servers, `reconciler` has what all kinds have in common (who owns what is on
the servers, drift, deletion), and each kind has a module that says what is special about it.
"""
