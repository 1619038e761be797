"""Compare whosin with riskcal on DP-SGD, side by side in one run: python benchmarks/dpsgd_vs_riskcal.py.

Both sides run alternately (riskcal, whosin, riskcal, whosin, ...), each task in a fresh process with one thread.
Writes benchmarks/results/dpsgd_vs_riskcal.json. Ends with status 1 if a whosin calibration misses its target on the
unsafe side, with status 2 if a side could not run. Standard library only.
"""

from __future__ import annotations

import sys
from pathlib import Path

import _common
import _side

TIMED_TASKS = ("curve", "calibrate", "calibrate_tpr")
SCRIPTS = {"riskcal": "_riskcal_side.py", "whosin": "_whosin_side.py"}
CLOCKS = ("cpu_seconds", "wall_seconds", "import_seconds")
TARGETS = {"calibrate": ("advantage", _side.TARGET_ADVANTAGE), "calibrate_tpr": ("tpr", _side.TARGET_TPR)}


def run_task(task: str, pythons: dict[str, Path], repeats: int) -> tuple[dict, dict]:
    """Run one task on both sides alternately; return the record and the versions seen."""
    record: dict = {side: {clock: [] for clock in CLOCKS} for side in pythons}
    versions: dict = {}
    for repeat in range(repeats):
        for side, python in pythons.items():
            print(f"{task}: {side} {repeat + 1}/{repeats}", file=sys.stderr, flush=True)
            answer = _common.run_side(python, SCRIPTS[side], task)
            for clock in CLOCKS:
                record[side][clock].append(answer[clock])
            record[side].setdefault("values", answer["values"])
            record[side]["same_values_every_time"] = (
                record[side].get("same_values_every_time", True) and record[side]["values"] == answer["values"]
            )
            versions[side] = answer["versions"]
    return record, versions


def add_ratio(record: dict) -> None:
    """Add the ratio riskcal / whosin of the median CPU seconds and of each alternating pair."""
    slow, fast = record["riskcal"]["cpu_seconds"], record["whosin"]["cpu_seconds"]
    record["cpu_ratio_of_medians"] = _common.median(slow) / _common.median(fast)
    record["cpu_ratio_of_each_pair"] = [a / b for a, b in zip(slow, fast, strict=True)]


def judge(task: str, record: dict, pythons: dict[str, Path]) -> dict:
    """Whether each side's noise multiplier keeps the target, judged by whosin; what riskcal sees is added."""
    metric, target = TARGETS[task]
    verdict: dict = {"metric": metric, "target": target}
    for side in pythons:
        noise = record[side]["values"]["noise_multiplier"]
        entry = {"noise_multiplier": noise}
        for viewer, python in pythons.items():
            if viewer == side:
                entry[f"seen_by_{viewer}"] = record[side]["values"]["own_view"]
            else:
                entry[f"seen_by_{viewer}"] = _common.run_side(python, SCRIPTS[viewer], "judge", repr(noise))["values"]
        judged_by = "whosin" if "whosin" in pythons else side
        entry["judged_by"] = judged_by
        entry["safe_side"] = entry[f"seen_by_{judged_by}"][metric] <= target
        verdict[side] = entry
    return verdict


def show(tasks: dict, verdicts: dict) -> None:
    """Print the tables."""
    rows = []
    for task, record in tasks.items():
        if task not in TIMED_TASKS:
            continue
        seconds = [
            f"{_common.median(record[side]['cpu_seconds']):.3f}" if side in record else "-"
            for side in ("riskcal", "whosin")
        ]
        ratio = f"{record['cpu_ratio_of_medians']:.1f}" if "cpu_ratio_of_medians" in record else "-"
        pairs = record.get("cpu_ratio_of_each_pair")
        spread = f"{min(pairs):.1f} .. {max(pairs):.1f}" if pairs else "-"
        rows.append((task, *seconds, ratio, spread))
    print("\nmedian CPU seconds after imports; ratio = riskcal / whosin")
    _common.print_table(("task", "riskcal", "whosin", "ratio", "ratio of each pair"), rows)

    if "curve" in tasks:
        print("\nTPR reported for DP-SGD with noise 0.8, sample rate 0.004, 2000 steps")
        sides = {side: tasks["curve"][side]["values"]["check_tpr"] for side in SCRIPTS if side in tasks["curve"]}
        rows = [
            (f"{fpr:g}", f"{true:.3g}", *(f"{tpr[k]:.4g}" for tpr in sides.values()))
            for k, (fpr, true) in enumerate(zip(_side.CHECK_FPR, _side.TRUE_TPR, strict=True))
        ]
        _common.print_table(("FPR", "true TPR", *sides), rows)

    for task, verdict in verdicts.items():
        print(f"\n{task}: {verdict['metric']} must be <= {verdict['target']}")
        for side in SCRIPTS:
            if side in verdict:
                entry = verdict[side]
                seen = entry[f"seen_by_{entry['judged_by']}"][verdict["metric"]]
                word = "keeps" if entry["safe_side"] else "MISSES"
                noise = entry["noise_multiplier"]
                print(f"  {side}: noise {noise:.5f}, {word} the target: {seen:.6g} as seen by {entry['judged_by']}")

    if "bad_input" in tasks:
        print("\nbad input")
        sides = [side for side in SCRIPTS if side in tasks["bad_input"]]
        calls = tasks["bad_input"][sides[0]]["values"]
        rows = []
        for call in calls:
            answers = [tasks["bad_input"][side]["values"][call] for side in sides]
            rows.append((call, *(str(a.get("returned", a.get("raised"))) for a in answers)))
        _common.print_table(("call", *sides), rows)


def main() -> int:
    """Run the comparison."""
    parser = _common.parser_for(__doc__, repeats=3)
    parser.add_argument("--tasks", nargs="+", choices=[*TIMED_TASKS, "bad_input"], default=[*TIMED_TASKS, "bad_input"])
    parser.add_argument("--riskcal-only", action="store_true", help="run only riskcal; prints, writes no results")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")

    pythons = {"riskcal": _common.riskcal_python()}
    if not options.riskcal_only:
        pythons["whosin"] = _common.whosin_python()

    tasks, verdicts, versions = {}, {}, {}
    try:
        for task in options.tasks:
            record, seen = run_task(task, pythons, options.repeats if task in TIMED_TASKS else 1)
            versions.update(seen)
            if task in TIMED_TASKS and len(pythons) == 2:
                add_ratio(record)
            if task in TARGETS:
                verdicts[task] = judge(task, record, pythons)
            tasks[task] = record
    except _common.SideFailed as failure:
        print(failure, file=sys.stderr)
        return 2

    show(tasks, verdicts)
    if options.riskcal_only:
        return 0
    content = {
        "repeats": options.repeats,
        "threads": 1,
        "versions": versions,
        "tasks": tasks,
        "verdicts": verdicts,
    }
    if set(options.tasks) == {*TIMED_TASKS, "bad_input"}:
        _common.write_results("dpsgd_vs_riskcal", (), content)
    else:
        print("\nnot all tasks were run: no results written")
    wrong = [task for task, verdict in verdicts.items() if not verdict["whosin"]["safe_side"]]
    if wrong:
        print(f"whosin is on the wrong side of its target: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
