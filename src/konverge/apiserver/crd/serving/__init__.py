"""Custom resources as the server serves them: strategies, columns, conversion, published schemas."""
