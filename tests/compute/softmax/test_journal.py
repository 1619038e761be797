"""The journal of a long run."""

import numpy as np

from whosin.compute.softmax.journal import Journal


def test_a_journal_keeps_tasks_that_ended_out_of_order(tmp_path):
    journal = Journal(tmp_path / "run.npz", "key")
    assert journal.start((3, 2), 9) is None
    journal.write(4, np.ones((3, 2)), {6: np.full((3, 2), 6.0), 8: np.full((3, 2), 8.0)})
    summed, sums, waiting = journal.start((3, 2), 9)
    assert summed == 4
    np.testing.assert_array_equal(sums, 1.0)
    assert sorted(waiting) == [6, 8]
    np.testing.assert_array_equal(waiting[8], 8.0)
