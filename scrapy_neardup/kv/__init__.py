"""Key-value stores: ordered byte keys in LevelDB, SQLite or memory, and their integrity."""
