"""The gate: between an operator and the API server, where everything is recorded and anything may go wrong."""
