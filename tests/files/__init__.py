"""Reading of feeds, tables, folders and archives."""
