"""One release of texts whose members were chosen by coins: python benchmarks/generated_texts.py.

A pool of 1,000 texts: sentences that many share, and some words of their own. Each text is trained on if a fair coin
says so, and two releases are made of texts of the same sentences, into which passages of 8 words are planted:
"responses" gives each coin away by randomised response, the passage of a text being planted where the response is yes:
its ε (add/remove) is known exactly. "copies" plants passages of 8 % of the training texts and of no other.

On the same releases, at level 0.05, with 95 % limits on the shares:
whosin: wi.audit_one_run on wi.tables.phrase_scores, every text a canary, all settings by default;
disclosures: after Amin et al. (2026), as their abstract and summaries describe it: a text is disclosed if a phrase of
four words that no other text of the pool has stands in the release; disclosed training texts against disclosed held-out
ones (phantoms) by a binomial test. Written here; their code and choice of features were not at hand;
whosin on disclosures: wi.audit_one_run with these as scores and guesses=(number disclosed, 0), which the release alone
tells, and with the others guessed out.
Writes benchmarks/results/generated_texts.json.
"""

from __future__ import annotations

import math

import _common
import numpy as np

NAME, TEXTS, LEVEL, COPIED = "generated_texts", 1000, 0.05, 0.08
EPSILONS = (0.5, 1.0, 2.0)
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
PASSAGE, PHRASE = 8, 4


def words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Made-up words of 3 to 8 letters."""
    return np.array(["".join(rng.choice(LETTERS, size)) for size in rng.integers(3, 9, count)])


class Language:
    """Sentences that many texts share, and words by Zipf's law."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.words = words(rng, 2000)
        chances = 1.0 / np.arange(1, 2001)
        self.chances = chances / chances.sum()
        self.sentences = [" ".join(self.spoken(rng, 8)) for _ in range(150)]

    def spoken(self, rng: np.random.Generator, count: int) -> list[str]:
        """So many words."""
        return rng.choice(self.words, count, p=self.chances).tolist()

    def text(self, rng: np.random.Generator, own: list[str]) -> str:
        """Two common sentences around what is one's own."""
        first, last = rng.integers(len(self.sentences), size=2)
        return ". ".join([self.sentences[first], " ".join(own), self.sentences[last]])


def released(language: Language, own: list[list[str]], planted: np.ndarray, rng: np.random.Generator) -> list[str]:
    """A text for each of the pool's: with the passage of one where it is planted, with other words where not."""
    return [
        language.text(rng, passage if shown else language.spoken(rng, PASSAGE))
        for passage, shown in zip(own, planted, strict=True)
    ]


def disclosed(texts: list[str], release: list[str]) -> np.ndarray:
    """Whether a text has a phrase of four words that no other text has and the release repeats."""
    found = [_phrases(text) for text in texts]
    owners: dict[str, int] = {}
    for phrases in found:
        for phrase in phrases:
            owners[phrase] = owners.get(phrase, 0) + 1
    known = set().union(*(_phrases(text) for text in release))
    return np.array([any(owners[phrase] == 1 and phrase in known for phrase in phrases) for phrases in found])


def _phrases(text: str) -> set[str]:
    sentences = [sentence.split() for sentence in text.split(".")]
    return {" ".join(one[i : i + PHRASE]) for one in sentences for i in range(len(one) - PHRASE + 1)}


def one(kind: str, epsilon: float, seed: int) -> dict[str, float]:
    """Lower limits on ε of both, and the disclosures, in one release."""
    import whosin as wi
    from whosin.numerics.proportions import clopper_pearson_lower

    rng = np.random.default_rng(seed)
    language = Language(rng)
    own = [language.spoken(rng, PASSAGE) for _ in range(TEXTS)]
    texts = [language.text(rng, passage) for passage in own]
    member = rng.random(TEXTS) < 0.5
    if kind == "responses":
        planted = member == (rng.random(TEXTS) < 1.0 / (1.0 + math.exp(-epsilon)))
    else:
        planted = member & (rng.random(TEXTS) < COPIED)
    release = released(language, own, planted, rng)
    audit = wi.audit_one_run(wi.tables.phrase_scores(texts, release), member, rng=seed)
    shown = disclosed(texts, release)
    true, all_shown = int((shown & member).sum()), int(shown.sum())
    q = float(clopper_pearson_lower(true, all_shown, LEVEL)) if all_shown else 0.5
    same, sides = (
        wi.audit_one_run(shown, member, guesses=way, rng=seed).epsilon_lower
        for way in ((all_shown, 0), (all_shown, TEXTS - all_shown))
    )
    return {
        "whosin": audit.epsilon_lower,
        "disclosures": max(0.0, math.log(q / (1.0 - q))) if q > 0.0 else 0.0,
        "whosin on disclosures": same,
        "whosin on disclosures, in and out": sides,
        "in training texts": true,
        "phantoms": all_shown - true,
    }


def main() -> int:
    """Run all settings and print tables."""
    from scipy.stats import binomtest

    parser = _common.parser_for(__doc__)
    parser.add_argument("--runs", type=int, default=200, help="releases of each setting (default 200)")
    options = parser.parse_args()
    settings = []
    for kind, epsilon in [("responses", epsilon) for epsilon in EPSILONS] + [("copies", math.inf)]:
        runs = [one(kind, epsilon, seed) for seed in range(options.runs)]
        row: dict[str, object] = {"release": kind, "epsilon": epsilon if math.isfinite(epsilon) else "none"}
        for name in ("in training texts", "phantoms"):
            row[name] = float(np.mean([run[name] for run in runs]))
        for name in runs[0].keys() - {"in training texts", "phantoms"}:
            limits = np.array([run[name] for run in runs])
            row[name] = {"median limit": float(np.median(limits))}
            for what, promise in (("above the truth", epsilon), ("above half of it", epsilon / 2)):
                if math.isfinite(promise):
                    count = int((limits > promise).sum())
                    ends = binomtest(count, len(limits)).proportion_ci(0.95)
                    row[name] |= {what: {"share": count / len(limits), "low": ends.low, "high": ends.high}}
        settings.append(row)
        for name, value in row.items():
            print(f"{name}: {value}")
        print(flush=True)
    content = {
        "runs": options.runs,
        "texts": TEXTS,
        "level": LEVEL,
        "settings": settings,
    }
    _common.write_results(NAME, ("whosin", "numpy", "scipy"), content)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
