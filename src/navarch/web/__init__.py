"""The dashboard: pages and a JSON API over a cluster that is read and never written (docs/dashboard.md)."""
