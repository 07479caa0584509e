"""The Kubernetes release that this server mirrors, and whose sources the tools generate data from."""

from __future__ import annotations

KUBERNETES_VERSION = "1.37.1"
MAJOR, MINOR, _PATCH = KUBERNETES_VERSION.split(".")
MINOR_VERSION = f"{MAJOR}.{MINOR}"
"""As it stands in OpenAPI documents and in the user agents of kubelets."""
LIBRARY_VERSION = f"0.{MINOR}.{_PATCH}"
"""The version of the Go modules that are published with the release: k8s.io/api, k8s.io/apimachinery and so on."""
