"""Look after a state: verify, repair, export, merge, migrate, forget, statistics."""
