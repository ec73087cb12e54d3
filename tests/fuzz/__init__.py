"""What a coverage-guided fuzzer drives; nothing here runs without one."""
