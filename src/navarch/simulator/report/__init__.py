"""`--report DIR`: what a simulation found as a page to look at, as JSON, and as CSV."""
