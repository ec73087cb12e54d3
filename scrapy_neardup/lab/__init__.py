"""How well a method does on labelled corpora, and how it bears edits."""
