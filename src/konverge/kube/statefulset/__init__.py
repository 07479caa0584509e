"""The StatefulSet controller: pods with names, an order and claims of their own."""
