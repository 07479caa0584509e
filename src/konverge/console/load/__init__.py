"""How busy a cluster is: how many keys wait in the queues of controllers, and how many requests are made."""
