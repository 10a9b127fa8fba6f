"""BinaryVectors: ids, codes and the coder that made them.

One class in five modules, each of which adds to the one before: `codes` (what is held), `search`,
`radius` (all rows up to a bound), `words` (gensim's methods) and `vectors` (files). `concat` joins
several.
"""

from embits.binary_vectors.concat import concat
from embits.binary_vectors.vectors import BinaryVectors

__all__ = ["BinaryVectors", "concat"]
