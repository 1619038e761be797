"""The shapes of what comes in and goes out, from which the description of the API is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from whosin.errors import split_names

HEAVY = ("dpsgd", "zcdp", "rdp", "profile")
"""Kinds of promises whose curve may take long."""
MOST_PAIRS = 6_000
"""Letters of a table that is pasted."""

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Prior = Annotated[
    float, Field(ge=1e-6, le=0.999999, allow_inf_nan=False, description="chance of membership beforehand")
]
Level = Annotated[float, Field(ge=0.5, le=0.9999, allow_inf_nan=False)]
Epsilon = Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False, description="ε of differential privacy")]
Delta = Annotated[float, Field(ge=0.0, le=0.5, allow_inf_nan=False, description="δ of differential privacy")]
SampleRate = Annotated[float, Field(ge=1e-6, le=1.0, allow_inf_nan=False, description="share in a batch")]
Steps = Annotated[int, Field(ge=1, le=1_000_000, description="steps of DP-SGD")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Run(_Strict):
    """A DP-SGD run, by rate and steps or by batches."""

    run: Literal["rate", "batches"] = Field("rate", description="which of the two ways to name a DP-SGD run counts")
    sample_rate: SampleRate = 0.01
    steps: Steps = 1000
    batch_size: Annotated[int, Field(ge=1, le=10**9, description="records of a batch")] = 100
    dataset_size: Annotated[int, Field(ge=1, le=10**9, description="records in all")] = 10_000
    epochs: Annotated[float, Field(gt=0.0, le=1e6, allow_inf_nan=False, description="passes over the records")] = 10.0
    sampling: Literal["poisson", "fixed_size", "random_allocation", "partition", "shuffled"] = "poisson"
    adjacency: Literal["add_remove", "replace", "zero_out"] = "add_remove"

    def rate_and_steps(self) -> tuple[float, int]:
        """Return the run as rate and steps."""
        from whosin.guarantees.sgd import rate_and_steps

        if self.run == "rate":
            return self.sample_rate, self.steps
        return rate_and_steps(self.batch_size, self.dataset_size, self.epochs)


class ExplainQuery(_Run):
    """A guarantee and a prior. Which parameters count depends on the kind."""

    kind: Literal["dp", "gdp", "zcdp", "rdp", "profile", "dpsgd", "mip"] = "dp"
    epsilon: Epsilon = 1.0
    delta: Delta = 0.0
    mu: Annotated[float, Field(ge=0.0, le=50.0, allow_inf_nan=False, description="μ of Gaussian DP")] = 1.0
    eta: Annotated[float, Field(ge=0.0, le=0.5, allow_inf_nan=False, description="η of MIP")] = 0.1
    rho: Annotated[float, Field(ge=0.0, le=100.0, allow_inf_nan=False, description="ρ of zero-concentrated DP")] = 0.1
    pairs: Annotated[
        str, Field(max_length=MOST_PAIRS, description="rdp: one order and its ε per line; profile: ε, δ")
    ] = ""
    noise_multiplier: Annotated[float, Field(ge=0.1, le=100.0, allow_inf_nan=False)] = 1.0
    prior: Prior = 0.5
    log: bool = Field(False, description="draw the curve on logarithmic axes (the page only)")


class CalibrateQuery(_Run):
    """A tolerable risk, and what to look for. Which parameters count depends on both."""

    find: Literal["epsilon", "dpsgd", "zcdp", "rdp", "mip", "sampling_rate"] = "epsilon"
    target: Literal["accuracy", "advantage", "posterior", "tpr"] = "accuracy"
    value: Share = 0.6
    fpr: Share = 0.01
    prior: Prior = 0.5
    delta: Delta = 0.0
    epsilon: Epsilon = 1.0
    order: Annotated[float, Field(ge=1.01, le=1000.0, allow_inf_nan=False, description="order of Rényi DP")] = 8.0


class ErrorAnswer(BaseModel):
    """What was wrong with a request."""

    error: str


class ExplainAnswer(BaseModel):
    """What a guarantee means against any attacker; every number is an upper limit but the first of ``posterior``."""

    guarantee: str
    kind: str
    parameters: dict[str, float | int | str | list[float] | None]
    prior: float
    sentence: str
    explanation: str
    accuracy: float
    advantage: float
    posterior: Annotated[list[float], Field(min_length=2, max_length=2)]
    tpr_at: dict[str, float]
    assumes: list[str]


class CalibrateAnswer(BaseModel):
    """Parameters that keep a risk, and what they mean."""

    sentence: str
    sampling_rate: float | None
    meaning: ExplainAnswer | None


def _listed(value: Any) -> Any:
    """Names separated by commas, as a form sends them."""
    return [part for part in split_names(value) if part] if isinstance(value, str) else value


def _blank(value: Any) -> Any:
    """An empty field of a form is no value."""
    return None if isinstance(value, str) and not value.strip() else value


def _unless_empty(value: Any) -> Any:
    """A field that was left empty is no value; a blank or a tab may be one."""
    return None if value == "" else {"tab": "\t", "space": " "}.get(value, value)


Names = Annotated[list[str], BeforeValidator(_listed), Field(max_length=100)]
Column = Annotated[str, Field(min_length=1, max_length=200)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]
Written = Annotated[Annotated[str, Field(min_length=1, max_length=40)] | None, BeforeValidator(_unless_empty)]


class AuditOptions(_Strict):
    """How an audit is done."""

    prior: Prior = 0.5
    confidence_level: Level = 0.95
    assignment: Literal["unknown", "random", "independent trainings"] = "unknown"
    columns: Names = Field(default_factory=list)
    groups: Names = Field(default_factory=list)
    ignore: Names = Field(default_factory=list)
    keep: Names = Field(default_factory=list)
    categories: Names = Field(default_factory=list)
    member_column: Column = "member"
    member_value: Annotated[Column | None, BeforeValidator(_blank)] = None
    person: Annotated[Column | None, BeforeValidator(_blank)] = None
    tolerate: Annotated[Share | None, BeforeValidator(_blank)] = None
    promised_epsilon: Annotated[Epsilon | None, BeforeValidator(_blank)] = None
    promised_delta: Annotated[Delta | None, BeforeValidator(_blank)] = None
    seed: Annotated[Seed | None, BeforeValidator(_blank)] = None
    individuals: bool = False
    """Whether the report names the most exposed."""
    separator: Written = None
    encoding: Written = None
    decimal: Annotated[Literal[".", ","] | None, BeforeValidator(_blank)] = None
    missing: Names = Field(default_factory=list)
    """Words for missing cells of text, JSON and workbooks."""
    header: Annotated[bool | None, BeforeValidator(_blank)] = None
    skip_lines: Annotated[Annotated[int, Field(ge=0, le=1000)] | None, BeforeValidator(_blank)] = None

    def written(self) -> dict[str, Any]:
        """Return how text files are written, as the reader takes it; what is to be recognised is left out."""
        named = ("separator", "encoding", "decimal", "missing", "header", "skip_lines")
        said = {name: getattr(self, name) for name in named}
        return {name: value for name, value in said.items() if value not in (None, [])}


class FileAnswer(BaseModel):
    """A file as it was uploaded; it is removed when the audit ends."""

    name: str
    bytes: int
    type: str


class AuditAnswer(BaseModel):
    """One audit."""

    id: str
    name: str
    kind: Literal["tables", "scores"]
    state: Literal["queued", "running", "done", "no verdict", "failed", "interrupted"]
    progress: float
    stage: str = ""
    """What is being done."""
    seconds_left: float | None = None
    """A guess by the time taken so far."""
    error: str | None
    created: float
    started: float | None
    finished: float | None
    options: AuditOptions
    files: dict[str, FileAnswer]
    summary: dict[str, Any] | None
    """What was measured, as ``whosin audit --json`` prints it, but for who is exposed."""
    has_report: bool

    @property
    def shown(self) -> str:
        """What to call it."""
        return self.name or f"audit {self.id[:6]}"


class AuditList(BaseModel):
    """The history, the newest first."""

    audits: list[AuditAnswer]


class CompareAnswer(BaseModel):
    """Audits side by side."""

    audits: list[AuditAnswer]
    statements: list[str]
    confidence_level: float
    """Confidence with which all intervals hold at the same time."""
