"""Reading files and checking records."""

import numpy as np
import pytest

from whosin.errors import InputError, InputTypeError
from whosin.tables import numeric_records, read_numeric


def test_a_list_of_numbers_is_one_column():
    assert numeric_records([1, 2, 3]).shape == (3, 1)


@pytest.mark.parametrize(
    ("records", "error", "says"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], InputError, "row 0"),
        ([[1.0], [np.inf]], InputError, "row 1"),
        ([], InputError, "at least 2 rows"),
        ([1.0], InputError, "at least 2 rows"),
        (np.zeros((3, 0)), InputError, "one column"),
        (np.zeros((2, 2, 2)), InputError, "3 dimensions"),
        (["a", "b"], InputTypeError, "must hold numbers"),
        ([[1, 2], [3]], InputTypeError, "rows of one length"),
    ],
)
def test_bad_records_name_the_place(records, error, says):
    with pytest.raises(error, match=says):
        numeric_records(records)


class Frame:
    """The little of a data frame that is used."""

    def __init__(self, **columns):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)

    def __getitem__(self, name):
        return self._columns[name]

    def to_numpy(self):
        return np.column_stack(list(self._columns.values()))


def test_data_frames_pass_if_numeric():
    assert numeric_records(Frame(a=[1.0, 2.0], b=[3, 4])).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(InputTypeError, match="column 'b'"):
        numeric_records(Frame(a=[1.0, 2.0], b=["x", "y"]))


def test_csv_with_and_without_header(tmp_path):
    (tmp_path / "named.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    (tmp_path / "plain.csv").write_text("1,2\n3,4\n", encoding="utf-8")
    for name, columns in (("named.csv", ["a", "b"]), ("plain.csv", ["column 0", "column 1"])):
        values, names, *_ = read_numeric(tmp_path / name)
        assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert names == columns
    values, names, *_ = read_numeric(tmp_path / "named.csv", ["b"])
    assert (values.tolist(), names) == ([[2.0], [4.0]], ["b"])


def test_numpy_files(tmp_path):
    np.save(tmp_path / "v.npy", np.arange(4.0))
    np.savez(tmp_path / "m.npz", only=np.eye(3))
    np.savez(tmp_path / "two.npz", a=np.eye(3), b=np.eye(3))
    assert read_numeric(tmp_path / "v.npy")[0].shape == (4, 1)
    assert read_numeric(tmp_path / "m.npz")[0].tolist() == np.eye(3).tolist()
    with pytest.raises(InputError, match="one array, got 2"):
        read_numeric(tmp_path / "two.npz")


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3, 4]}), tmp_path / "t.parquet")
    values, names, *_ = read_numeric(tmp_path / "t.parquet")
    assert (values.tolist(), names) == ([[1.0, 3.0], [2.0, 4.0]], ["a", "b"])


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "", "is empty"),
        ("x.csv", "a,b\n1,2\n3\n", "line 3 must have 2 cells"),
        (
            "x.csv",
            "a,b\n1,2\nx,4\n",
            "x.csv line 3 column 'a' must be a number, got 'x'; columns= chooses others, such as b",
        ),
        ("x.csv", "a,b\n1,\n3,4\n", "x.csv line 2 column 'b' must be a number, got a missing cell; gaps='drop'"),
        ("x.csv", "a\n1\nnan\n", "line 3 column 'a'"),
        ("x.doc", "1", "x.doc must have at least 2 rows"),
        ("x.npy", "not an array", "plain NumPy array"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, name, text, says):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=says):
        read_numeric(tmp_path / name)


def test_missing_file_and_column(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_numeric(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column 'c'; it has a, b"):
        read_numeric(tmp_path / "x.csv", ["c"])
