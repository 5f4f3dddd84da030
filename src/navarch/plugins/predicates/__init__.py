"""Which nodes a pod may use: one file a rule."""
