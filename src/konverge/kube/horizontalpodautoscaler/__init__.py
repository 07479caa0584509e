"""The horizontal pod autoscaler.

`usage` computes replicas from what pods use, `limits` holds them within the user's bounds, `metrics` reads the metrics
API, `controller` writes the scale and the status. Upstream: pkg/controller/podautoscaler.
"""
