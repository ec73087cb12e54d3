"""Whether a state is whole, and a mended copy of one that is not."""
