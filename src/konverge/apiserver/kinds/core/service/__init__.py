"""Service and Endpoints."""
