"""The default method: a coarse filter finds candidates, a fine check decides."""
