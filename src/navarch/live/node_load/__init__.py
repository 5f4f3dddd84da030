"""The load of nodes, fetched from a metrics server beside the cycles."""
