"""Tables, figures and documents of scores."""
