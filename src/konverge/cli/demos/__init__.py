"""The stories that `konverge demo` tells."""
