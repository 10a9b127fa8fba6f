"""The page of a collection of texts: it answers questions as `embits ask` does."""

import json
import shutil

import pytest

import embits
from embits.errors import InputError
from embits.jobs.texts import index_texts
from embits.page import write_page
from embits.text.answers import SHARING, noise_threshold, share_words
from tests.support.javascript import CHROMIUM, needs_chromium, needs_packages, node

pytest.importorskip("pyarrow")

SUBJECTS = ["music", "river", "war", "money", "game", "book", "city", "doctor", "school", "church"]
QUESTIONS = ["a song of the band", "water of the lake", "the bank paid", "teachers and students"]
NONSENSE = ["xqzv wkjh", "", "🙂"]


def texts(folder):
    """Texts about ten things, made of the words that are closest to them."""
    words = embits.binarize(embits.sample_vectors(), 128, "itq")
    words.save(folder / "words.safetensors")
    lines = []
    for subject in SUBJECTS:
        near = [word for word, _ in words.most_similar(subject, topn=60)]
        for row in range(12):
            record = {"id": f"{subject}-{row}", "text": " ".join([subject, *near[5 * row :][:8]])}
            if row % 2:
                record |= {"title": f"<b>About {subject}</b>", "url": f"pages/{subject}.html"}
            if row == 4:
                record["url"] = "JavaScript:alert(1)"
            lines.append(json.dumps(record))
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "texts.jsonl", folder / "words.safetensors"


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """A folder with a collection of texts, `notes`, and its page, `site`."""
    folder = tmp_path_factory.mktemp("notes")
    file, words = texts(folder)
    index_texts([file], folder / "notes", str(words), 128)
    write_page(folder / "notes", folder / "site", title="My notes")
    return folder


def names(site):
    about = json.loads((site / "page.json").read_bytes())
    return {about[key] for key in ("file", "encoder", "texts")}


def test_the_page_has_the_codes_the_encoder_and_the_texts(notes):
    about = json.loads((notes / "site" / "page.json").read_bytes())
    collection = embits.load(notes / "notes")
    bits = embits.load(notes / "site" / about["file"], verify=True)
    assert list(map(str, bits.ids())) == list(map(str, collection.ids()))
    encoder = embits.TextEncoder.load(notes / "site" / about["encoder"], verify=True)
    assert encoder.coder_ is None  # questions need no codes
    found = json.loads((notes / "site" / about["texts"]).read_bytes())
    assert found["least"] == pytest.approx(noise_threshold(collection, encoder))
    rows = list(map(str, bits.ids()))
    assert found["rows"][rows.index("music-1")][0] == "<b>About music</b>"
    assert found["rows"][rows.index("music-0")] == ["", found["rows"][rows.index("music-0")][1], ""]


def test_a_new_page_replaces_the_data_of_the_old_one(notes, tmp_path):
    shutil.copytree(notes / "site", tmp_path / "site")
    old = names(tmp_path / "site")
    (tmp_path / "site" / "mine.json").write_text("{}")
    embits.binarize(embits.sample_vectors(), 64, "itq").save(tmp_path / "words.safetensors")
    with pytest.raises(InputError):
        write_page(tmp_path / "words.safetensors", tmp_path / "site")
    write_page(tmp_path / "words.safetensors", tmp_path / "site", overwrite=True)
    assert not [name for name in old if (tmp_path / "site" / name).exists()]
    assert (tmp_path / "site" / "mine.json").exists()
    write_page(notes / "notes", tmp_path / "site", overwrite=True)
    assert names(tmp_path / "site") == old


def test_a_damaged_encoder_makes_no_page(notes, tmp_path):
    shutil.copytree(notes / "notes", tmp_path / "notes")
    path = tmp_path / "notes" / "_encoder.safetensors"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(embits.FormatError, match="_encoder"):
        write_page(tmp_path / "notes", tmp_path / "site")
    assert not (tmp_path / "site").exists()


@needs_packages
@needs_chromium
def test_the_page_answers_as_python_in_chromium(notes, tmp_path):
    collection = embits.load(notes / "notes")
    least = noise_threshold(collection, collection.text_encoder)
    expected = {}
    for question in QUESTIONS:
        found = collection.search_texts(question, 10)
        columns = [found.column(name) for name in ("title", "text")]
        expected[question] = [
            [str(name), score]
            for name, score, *texts in zip(found.ids, found.scores.tolist(), *columns, strict=True)
            if score >= least * (SHARING if share_words(question, f"{texts}") else 1)
        ]
        assert expected[question]
    facts = {"site": str(notes / "site"), "expected": expected, "nonsense": NONSENSE}
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    node(
        "--test",
        "--test-reporter=spec",
        "page_texts.test.mjs",
        PAGE_FACTS=str(tmp_path / "facts.json"),
        CHROMIUM=CHROMIUM,
    )
