"""Data files of every layout are read, and a malformed or unknown file is named."""

import os

import numpy as np
import pytest

import embits
from embits.evaluation import DataFolder, Evaluator, read_labelled, read_pairs, read_questions
from embits.evaluation.data import read_split


@pytest.mark.parametrize(
    ("text", "line"),
    [("a b 1\na b\n", 2), ("a b c\n", 1), ("a b 1 2\n", 1), ("# x\n\na b nan\n", 3)],
)
def test_malformed_pairs_name_the_line(tmp_path, text, line):
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(embits.ReadError, match=rf"bad.txt: line {line}: found .* expected word"):
        read_pairs(path)


def test_malformed_questions_name_the_line(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_text(": x\na b c d\na b c\n")
    with pytest.raises(embits.ReadError, match="line 3"):
        read_questions(path)


def test_malformed_texts_are_refused(tmp_path):
    path = tmp_path / "train.csv"
    texts = "".join(f"a text {i},{i % 2}\n" for i in range(500))
    rows = "".join(f"{i},a text\n" for i in range(50))
    for text in ('"1"\n', '"","a"\n', "label,text\n", texts, rows, ""):
        path.write_text(text)
        with pytest.raises(embits.ReadError, match=r"train\.csv"):
            read_labelled(path)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("1,a\n3,b\n2,c\n", [0, 1, 2]),
        ("0,a\n1000000,b\n0,c\n", [0, 1, 0]),
        ("label,text\n1,a\n0,b\n1,c\n", [0, 1, 0]),
        ("text,label\na,1\nb,2\nc,1\n", [0, 1, 0]),
        ("text,category\na,sports\nb,business\nc,sports\n", [0, 1, 0]),
        ("sports,a\nbusiness,b\nsports,c\n", [0, 1, 0]),
        ("-1,a\n1,b\n1,c\n", [0, 1, 1]),
        (f"{10**30},a\n1,b\n{10**30},c\n", [0, 1, 0]),
        ("Class Index,Title,Description\n1,a,\n2,b,\n1,c,\n", [0, 1, 0]),
        ("kind,words\n1,a\n2,b\n1,c\n", [0, 1, 0]),
    ],
)
def test_classes_are_numbers_or_names_with_or_without_a_header(tmp_path, text, classes):
    (tmp_path / "train.csv").write_text(text)
    read = read_labelled(tmp_path / "train.csv")
    assert [text.strip() for text in read.texts] == ["a", "b", "c"]
    assert read.classes.tolist() == classes


def test_both_files_of_a_set_number_the_classes_alike(tmp_path):
    (tmp_path / "train.csv").write_text("label,text\nsports,a\nart,b\nscience,c\n")
    (tmp_path / "test.csv").write_text("label,text\nscience,d\nsports,e\n")
    split = read_split(tmp_path)
    assert (split.train.classes.tolist(), split.test.classes.tolist()) == ([0, 1, 2], [2, 0])
    (tmp_path / "train.csv").write_text("0,a\n1,b\n")
    (tmp_path / "test.csv").write_text("1,a\n")
    assert read_split(tmp_path).test.classes.tolist() == [1]


def test_texts_of_any_number_of_columns_are_read_and_thinned(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text('"2","a ""q""","b\\nc","d"\n' * 10)
    read = read_labelled(path, most_rows=4)
    assert read.texts == ['a "q" b c d'] * 4
    assert read.classes.tolist() == [0] * 4


def test_classes_that_are_only_in_the_test_file_are_noted(tmp_path):
    folder = tmp_path / "classification/mine"
    folder.mkdir(parents=True)
    (folder / "train.csv").write_text("1,a\n2,b\n")
    (folder / "test.csv").write_text("1,a\n3,b\n4,c\n")
    data = DataFolder.at(tmp_path)
    assert len(dict(data.classification())) == 1
    assert "mine: 2 classes of test.csv are not in train.csv: never guessed" in data.problems


def test_files_that_never_end_are_left_out_with_a_note(tmp_path):
    for name in ("similarity", "analogy", "classification/c", "retrieval/r"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "similarity/MEN.txt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "similarity/RW.txt")
    (tmp_path / "similarity/WS353.txt").touch()
    os.truncate(tmp_path / "similarity/WS353.txt", 1 << 40)
    os.mkfifo(tmp_path / "analogy/questions-words.txt")
    os.mkfifo(tmp_path / "retrieval/r/corpus_ids.txt")
    np.save(tmp_path / "retrieval/r/corpus.npy", np.eye(2))
    (tmp_path / "classification/c/train.csv").touch()
    os.truncate(tmp_path / "classification/c/train.csv", 1 << 32)
    data = DataFolder.at(tmp_path)
    read = data.similarity(), data.analogy(), dict(data.classification()), data.retrieval()
    assert read == ({}, {}, {}, {})
    found = "a device", "a pipe", "1,099,511,627,776 bytes", "a pipe", "a line of over", "a pipe"
    for text, note in zip(found, data.problems, strict=True):
        assert text in note


def test_missing_and_malformed_sets_leave_the_others_scored(tmp_path, vectors, bits):
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity/MEN.txt").write_text(
        "word1 word2 1\nword3 word4 2\nword9 word8 3\nno word1 3\n"
    )
    (tmp_path / "similarity/RW.txt").write_text("damaged\n")
    evaluator = Evaluator(DataFolder.at(tmp_path), vectors, ("similarity", "analogy"))
    entry = evaluator.evaluate_bits(bits)
    assert entry["similarity"]["MEN"]["pairs"] == 3
    assert entry["similarity"]["MEN"]["oov"] == 1
    assert "RW" not in entry["similarity"]
    notes = "\n".join(evaluator.notes)
    assert notes.startswith("RW is skipped")
    assert "line 1: found 'damaged'" in notes
    assert "analogy is skipped: no data sets in" in notes


PAIRS = [("car", "auto", 8.5), ("New York", "city", 7.0), ("cup", "mug", 6.25)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.csv", 'car,auto,8.5\n"New York",city,7\ncup,mug,6.25\n'),
        ("mine.csv", 'Word 1,Word 2,Score\ncar, auto, 8.5\n"New York", city, 7\ncup,mug,6.25'),
        ("mine.csv", "word1;word2;score\ncar;auto;8.5\nNew York;city;7\ncup;mug;6.25\n"),
        ("mine.tsv", "car\tauto\t8.5\nNew York\tcity\t7\ncup\tmug\t6.25\n"),
        ("mine.tsv", "w1\tw2\tPOS\tSimLex\tconc\ncar\tauto\tN\t8.5\t1\nNew York\tcity\tN\t7\t2\n"
                     "cup\tmug\tN\t6.25\t3\n"),
        ("mine.tsv", "\tw1\tw2\tscore\tnote\n0\tcar\tauto\t8.5\t\n1\tNew York\tcity\t7\tx\n"
                     "2\tcup\tmug\t6.25\t\n"),
        ("mine.txt", "# a comment\ncar\tauto\t8.5\n\nNew York\tcity\t7\ncup mug 6.25\n"),
    ],
)  # fmt: skip
def test_pairs_are_read_from_text_csv_and_tsv_with_or_without_a_header(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    read = read_pairs(tmp_path / name)
    assert list(zip(read.first, read.second, read.scores.tolist(), strict=True)) == PAIRS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a,b,c\nd,e,f\n", 2),
        ("a,b,c\n", 1),
        ("a,b,1\nc,d,x\n", 2),
        ("a,b,1\nc,d,2,3\n", 2),
        ("word1,word2,n,score\na,b,1,2\nc,d,1\n", 3),
        ("a,b,1_000\nc,d,1_000\n", 2),
    ],
)
def test_lines_that_are_unlike_the_first_are_refused(tmp_path, text, line):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(embits.ReadError, match=rf"bad.csv: line {line}: found"):
        read_pairs(tmp_path / "bad.csv")


@pytest.mark.parametrize(
    "text",
    [
        "id,word1,word2,score\n1,car,auto,8.5\n2,New York,city,7\n3,cup,mug,6.25\n",
        "word1,word2,n_raters,score\ncar,auto,10,8.5\nNew York,city,12,7\ncup,mug,9,6.25\n",
        "score,Word 1,Word 2\n8.5,car,auto\n7,New York,city\n6.25,cup,mug\n",
        "word1,word2,Human (mean),sd\ncar,auto,8.5,1\nNew York,city,7,1\ncup,mug,6.25,2\n",
    ],
)
def test_columns_of_pairs_are_found_by_the_names_in_the_header(tmp_path, text):
    (tmp_path / "mine.csv").write_text(text)
    read = read_pairs(tmp_path / "mine.csv")
    assert list(zip(read.first, read.second, read.scores.tolist(), strict=True)) == PAIRS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,car,auto,8.5\n2,cup,mug,7\n", "'1': name the columns word1, word2 and score"),
        ("n,x,y,value\n1,car,auto,8.5\n", "name the columns word1, word2 and score"),
        ("word1,word2,raters,value\ncar,auto,10,8.5\n", "line 2: found several numbers"),
    ],
)
def test_columns_of_pairs_that_are_not_clear_are_refused(tmp_path, text, says):
    (tmp_path / "mine.csv").write_text(text)
    with pytest.raises(embits.ReadError, match=says):
        read_pairs(tmp_path / "mine.csv")


def test_files_of_any_kind_are_scored_or_named(tmp_path, bits):
    folder = tmp_path / "similarity"
    folder.mkdir()
    (folder / "mine.csv").write_text("word1,word2,score\nword1,word2,1\nword3,word4,2\n")
    (folder / "MEN.txt").write_text("word1 word2 1\nword3 word4 2\n")
    (folder / "MEN.tsv").write_text("word1\tword2\t1\n")
    (folder / "notes.xlsx").touch()
    (folder / ".hidden").touch()
    (tmp_path / "analogy").mkdir()
    (tmp_path / "analogy/mine.txt").touch()
    evaluator = Evaluator(tmp_path, None, ("similarity", "analogy"))
    scores = evaluator.evaluate_bits(bits)["similarity"]
    assert (scores["mine"]["pairs"], scores["MEN"]["pairs"]) == (2, 2)
    unused = [note for note in evaluator.notes if "is not used" in note]
    assert [any(name in note for note in unused) for name in ("notes.xlsx", "MEN.tsv", "mine.txt")]
    assert len(unused) == 3
