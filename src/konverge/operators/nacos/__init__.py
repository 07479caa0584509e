"""The Nacos operator."""
