"""The file of binary vectors: its layout, and what it holds."""
