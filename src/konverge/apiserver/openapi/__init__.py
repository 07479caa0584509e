"""OpenAPI: the documents that describe the API, for `kubectl explain`, for validation in clients, for generators."""
