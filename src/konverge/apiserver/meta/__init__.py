"""The rules of `metadata` that hold for every kind: what the server sets, what it keeps, what it refuses."""
