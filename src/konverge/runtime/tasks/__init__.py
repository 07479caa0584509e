"""Work besides reconciles: tasks of a manager, its hooks, timers and daemons of objects, and objects that are gone."""
