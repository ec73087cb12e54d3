"""The agreement of methods with a person, on documents of files."""
