"""The plans: what can go wrong with an operator, derived from what it did in the reference run."""
