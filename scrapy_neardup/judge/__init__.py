"""Where methods meet the state."""
