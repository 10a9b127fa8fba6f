"""Small tokenizers of every kind, trained in a moment, and texts of many kinds."""

import json
import random
import unicodedata

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, and the dog doesn't mind.",
    "Prices rose by 3.75% in 2024 (from $1,299 to $1,348)!",
    "Zürich's cafés serve naïve façade über-crème brûlée: déjà vu?",
    "Ein Verlag veröffentlicht Gedichte aus dem Nachlass; Straße, Fuß, GROẞ.",
    "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. ΟΔΥΣΣΕΥΣ",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка, Йод",
    "敏捷的棕色狐狸跳过了懒狗。今日は良い天気ですね、カタカナ ﾊﾝｶｸ。",
    "다람쥐 헌 쳇바퀴에 타고파. 한글 자모",
    "نص حكيم له سر قاطع وذو شأن عظيم؛ עטלף אבק נס דרך מזגן",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश",
    "👩🏽‍🚀🚀 emoji ❤️ 🇫🇷🇯🇵 👨‍👩‍👧‍👦 #️⃣ ½ ² ℃ ﬁ ㎏ Ⅷ ǅ İstanbul ı",
    "tab\tnew\nline\r\n  many   spaces\u00a0no-break\u2003em\u3000wide\u200bzero\ufeffbom",
    "snake_case camelCase https://example.org/a?b=c&d=%20 user@example.com <s>[UNK]</s> <0x0A>",
    "I'll we've they're it's don't I'm he'd 's",
    "é e\u0301 ệ e\u0323\u0302 ạ\u0308 q\u0307\u0323 \u0344 각 \u1100\u1161\u11a8",
]


def settings(tokenizer, **model):
    """The JSON of a tokenizer, with other settings of its model."""
    found = json.loads(tokenizer.to_str())
    found["model"].update(model)
    return json.dumps(found, ensure_ascii=False)


def _trained(model, trainer, normalizer=None, pre_tokenizer=None):
    tokenizer = Tokenizer(model)
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    return tokenizer


def _wordpiece(**normalizer):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=700, special_tokens=special, show_progress=False, min_frequency=1
    )
    return _trained(
        models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20),
        trainer,
        normalizers.BertNormalizer(**normalizer),
        pre_tokenizers.BertPreTokenizer(),
    )


def _bpe(trainer=None, normalizer=None, pre_tokenizer=None, **model):
    options = {
        "vocab_size": 900,
        "show_progress": False,
        "special_tokens": ["<unk>", "<s>", "</s>"],
    }
    made = models.BPE(unk_token="<unk>", **model)
    return _trained(
        made, trainers.BpeTrainer(**options, **trainer or {}), normalizer, pre_tokenizer
    )


def _llama():
    """As of Llama 2: spaces are ▁, unknown characters are bytes, and a text is one word."""
    sequence = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    bytes_ = [f"<0x{number:02X}>" for number in range(256)]
    trained = _bpe(
        {"initial_alphabet": list("abcdefghijklmnopqrstuvwxyz▁"), "limit_alphabet": 60},
        normalizers.Sequence(sequence),
        fuse_unk=True,
    )
    found = json.loads(trained.to_str())
    vocab = found["model"]["vocab"]
    for byte in bytes_:
        vocab.setdefault(byte, len(vocab))
    found["model"]["byte_fallback"] = True
    return json.dumps(found, ensure_ascii=False)


def _unigram(normalizer, pre_tokenizer, **options):
    trainer = trainers.UnigramTrainer(
        vocab_size=400,
        special_tokens=["<unk>", "<s>", "</s>"],
        unk_token="<unk>",
        show_progress=False,
    )
    trained = _trained(models.Unigram(), trainer, normalizer, pre_tokenizer)
    return settings(trained, **options)


def _with_added(tokenizer):
    tokenizer.add_tokens(
        [
            AddedToken("brown fox", normalized=True),
            AddedToken("Déjà", normalized=True, single_word=True),
            AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False),
            AddedToken("dog", single_word=True, normalized=False),
        ]
    )
    return tokenizer


def trained():
    """The JSON of small tokenizers by name."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet()}
    split = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Whitespace(),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Punctuation("merged_with_previous"),
        ]
    )
    accents = normalizers.Sequence(
        [
            normalizers.NFKD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.Strip(),
        ]
    )
    nfkc = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Lowercase()])
    return {
        "wordpiece": _wordpiece().to_str(),
        "wordpiece-cased": _wordpiece(lowercase=False, strip_accents=False).to_str(),
        "wordpiece-raw": _wordpiece(clean_text=False, handle_chinese_chars=False).to_str(),
        "bpe-bytes": _llama(),
        "bpe-byte-level": _bpe(alphabet, normalizers.NFC(), byte_level).to_str(),
        "bpe-affixes": _bpe(
            {"end_of_word_suffix": "</w>", "continuing_subword_prefix": "@@"},
            accents,
            split,
            end_of_word_suffix="</w>",
            continuing_subword_prefix="@@",
        ).to_str(),
        "bpe-first": _bpe(
            None, normalizers.NFD(), pre_tokenizers.Metaspace(prepend_scheme="first")
        ).to_str(),
        "unigram": _unigram(nfkc, pre_tokenizers.Metaspace()),
        "unigram-bytes": _unigram(None, pre_tokenizers.Metaspace(split=False), byte_fallback=True),
        "added": _with_added(_wordpiece()).to_str(),
        "added-bpe": _with_added(_bpe(alphabet, None, pre_tokenizers.ByteLevel())).to_str(),
    }


def texts(count, seed=0):
    """Sentences, pieces of them, and garbage: unassigned code points, controls, long runs."""
    rng = random.Random(seed)
    found = [*SENTENCES, "", " ", "  ", "a", "▁", "\0", "\ufffd", "##a", "a" * 300, "🙂" * 90]
    marks = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c))[0] == "M"]
    while len(found) < count:
        kind = rng.randrange(6)
        if kind == 0:  # parts of sentences in another order
            words = " ".join(rng.sample(SENTENCES, 2)).split(" ")
            text = " ".join(rng.choices(words, k=rng.randrange(1, 30)))
        elif kind == 1:  # characters of sentences
            text = "".join(rng.choices("".join(SENTENCES), k=rng.randrange(1, 60)))
        elif kind == 2:  # any code points
            text = "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(1, 20)))
        elif kind == 3:  # code points of one small range, such as a script or controls
            start = rng.choice([0, 0x80, 0x300, rng.randrange(0x3000), rng.randrange(0x20000)])
            text = "".join(chr(start + rng.randrange(0x60)) for _ in range(rng.randrange(1, 40)))
        elif kind == 4:  # marks in any order on letters and syllables
            text = "".join(
                rng.choice(["a", "o", "각", "ㄱ", "\u1100\u1161"])
                + "".join(rng.choices(marks, k=3))
                for _ in range(rng.randrange(1, 8))
            )
        else:  # long runs
            text = "".join(
                rng.choice("".join(SENTENCES)) * rng.randrange(1, 40)
                for _ in range(rng.randrange(1, 6))
            )
        text = "".join(c for c in text if not "\ud800" <= c <= "\udfff")
        found.append(text)
    return found[:count]
