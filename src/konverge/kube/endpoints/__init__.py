"""Endpoints and EndpointSlices: where the pods behind a Service are, and which of them serve."""
