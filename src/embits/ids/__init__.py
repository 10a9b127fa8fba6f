"""The ids of rows: words that are looked up, row numbers, and subwords of unknown words."""
