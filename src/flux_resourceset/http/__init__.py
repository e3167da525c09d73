"""Everything that knows HTTP: routes, authentication, problems, metrics, and the fast path of the poll."""
