"""Text encoders: a tokenizer, a table of token codes, and what pools them into vectors."""
