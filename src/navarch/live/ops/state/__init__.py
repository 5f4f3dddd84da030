"""The state that a leader shows: `cycle_log` keeps it, `publisher` writes it to a ConfigMap, `pages` answers under /state."""
