"""Where a pod may go: kube-scheduler's filters, each a vectorised rule over all nodes, and the plugins that switch them."""
