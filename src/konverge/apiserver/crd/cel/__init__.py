"""CEL rules in structural schemas: types, compilation, cost, evaluation."""
