"""Admission webhooks: other people's say in a write."""
