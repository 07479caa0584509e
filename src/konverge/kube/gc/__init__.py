"""The garbage collector: what nobody owns any more goes; what is to go waits for, or lets go, what depends on it."""
