"""Small static models for tests: tables of token vectors with their tokenizers."""

import json
from pathlib import Path

import numpy as np

WORDS = "music song album guitar river water boat lake train station ticket the a of ##s ##er"


def write_model(folder: Path, *, normalize=True, shared=False, weights=False, dims=16, seed=0):
    """A folder as model2vec writes it, of a WordPiece tokenizer; returns its tensors."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokens = ["[PAD]", "[UNK]", *WORDS.split()]
    vocab = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rng = np.random.default_rng(seed)
    n = len(tokens) // 2 if shared else len(tokens)
    tensors = {"embeddings": rng.normal(size=(n, dims)).astype("f4")}
    tensors["embeddings"] *= rng.uniform(0.2, 3, (n, 1)).astype("f4")
    if shared:
        tensors["mapping"] = rng.integers(0, n, len(tokens))
    if weights:
        tensors["weights"] = rng.uniform(0.5, 2, len(tokens)).astype("f4")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"normalize": normalize}))
    write_tensors(folder / "model.safetensors", tensors)
    return tensors


def write_tensors(path, tensors):
    """A plain safetensors file."""
    from safetensors.numpy import save_file

    save_file(tensors, path)
