"""What is known of a page, a pair or a state, as plain data."""
