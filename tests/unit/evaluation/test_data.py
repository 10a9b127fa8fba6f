"""Data files of every layout are read, and a malformed or unknown file is named."""

import pytest

import embits
from embits.evaluation import DataFolder, Evaluator, read_labelled, read_pairs, read_questions


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


@pytest.mark.parametrize(
    ("text", "says"),
    [("label,text\n1,a\n", "header is not allowed"), ('"0","a"\n', "classes that start at 1")],
)
def test_a_header_and_the_class_0_have_their_own_messages(tmp_path, text, says):
    (tmp_path / "train.csv").write_text(text)
    with pytest.raises(embits.ReadError, match=f"line 1: found .*{says}"):
        read_labelled(tmp_path / "train.csv")


@pytest.mark.parametrize("text", ['"x","a"\n', '"1"\n', '"0","a"\n', ""])
def test_malformed_texts_are_refused(tmp_path, text):
    path = tmp_path / "train.csv"
    path.write_text(text)
    with pytest.raises(embits.ReadError, match=r"train\.csv"):
        read_labelled(path)


def test_texts_of_any_number_of_columns_are_read_and_thinned(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text('"2","a ""q""","b\\nc","d"\n' * 10)
    read = read_labelled(path, most_rows=4)
    assert read.texts == ['a "q" b c d'] * 4
    assert read.classes.tolist() == [1] * 4


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
    assert "analogy/questions-words.txt: no such file" in notes
    assert "similarity: SimLex, SimVerb, WS353 not found in" in notes


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
        ("mine.txt", "# a comment\ncar\tauto\t8.5\n\nNew York\tcity\t7\ncup mug 6.25\n"),
    ],
)  # fmt: skip
def test_pairs_are_read_from_text_csv_and_tsv_with_or_without_a_header(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    read = read_pairs(tmp_path / name)
    assert list(zip(read.first, read.second, read.scores.tolist(), strict=True)) == PAIRS


@pytest.mark.parametrize(
    ("text", "line"), [("a,b,c\nd,e,f\n", 2), ("a,b,c\n", 1), ("a,b,1\nc,d,x\n", 2)]
)
def test_only_the_first_line_may_be_a_header(tmp_path, text, line):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(embits.ReadError, match=rf"bad.csv: line {line}: found"):
        read_pairs(tmp_path / "bad.csv")


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
