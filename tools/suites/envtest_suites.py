"""Which suites start envtest: controller-runtime's own, and those of four operators."""

from __future__ import annotations

from tools.suites.envtest import Suite

CONTROLLER_RUNTIME = Suite(
    "controller-runtime",
    "sigs.k8s.io/controller-runtime",
    "v0.25.2",
    packages=(
        *("pkg/builder", "pkg/cache", "pkg/client", "pkg/cluster", "pkg/controller", "pkg/controller/controllerutil"),
        *("pkg/envtest", "pkg/handler", "pkg/internal/controller", "pkg/internal/recorder", "pkg/manager"),
        *("pkg/manager/internal/integration", "pkg/metrics/filters", "pkg/reconcile", "pkg/source", "pkg/webhook"),
    ),
    known={
        "should return an error when context is cancelled": "expects that the first list of pods is not there at once"
    },
)
"""Not pkg/client/apiutil: it downloads the programs of an old Kubernetes."""

_METRICS = 8080
"""Where a manager of controller-runtime shows its metrics if nothing else is said."""

OPERATORS = (
    Suite(
        "rabbitmq",
        "github.com/rabbitmq/cluster-operator/v2",
        "v2.20.0",
        packages=("api/v1beta1", "internal/controller", "pkg/profiling"),
    ),
    Suite(
        "trust-manager",
        "github.com/cert-manager/trust-manager",
        "v0.25.0",
        packages=("test/integration/bundle", "test/integration/clusterbundle"),
    ),
    Suite(
        "jobset",
        "sigs.k8s.io/jobset",
        "v0.12.0",
        packages=("test/integration/controller", "test/integration/webhook"),
        known={
            "dynamic horizontal pod scaling propagates": "reads and writes while the controller writes: may conflict",
            "rejects updates to parallelism and completions": "the same; without a webhook only a conflict refuses it",
        },
        ports=(_METRICS,),
    ),
    Suite(
        "lws",
        "sigs.k8s.io/lws",
        "v0.9.0",
        packages=("test/integration/controllers", "test/integration/webhooks"),
        ports=(_METRICS,),
    ),
)
