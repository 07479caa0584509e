"""The operators built on the runtime: ordinary programs that run on any Kubernetes."""
