"""What the kinds are declared with."""
