"""The controllers that make a Kubernetes of an API server, each an ordinary controller on our own runtime."""
