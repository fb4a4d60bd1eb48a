package stats

import "time"

// By is what the groups of a summary are by.
type By string

// What groups can be by.
const (
	ByTaskType By = "task_type"
	ByModel    By = "model"
	ByDay      By = "day"
	ByStatus   By = "status"
)

// Options say which lines count and how they are grouped.
type Options struct {
	Since   time.Time // zero: all
	By      By        // of Summary.Groups; "" is by task type
	Log     string    // the log's path, for the summary to name
	Workers int       // 0: one for each processor
}

// Summary is what the log says, with the names of the tool's stats result. Rates are 0 where nothing was counted.
type Summary struct {
	Delegations     int            `json:"delegations"`
	Analyzed        int            `json:"analyzed"`
	ByStatus        map[string]int `json:"by_status"`
	SuccessRate     float64        `json:"success_rate"`   // accomplished ÷ delegations
	ProvenRate      float64        `json:"proven_rate"`    // proven ÷ delegations
	FirstTryRate    float64        `json:"first_try_rate"` // accomplished in one attempt ÷ those that say their attempts
	Tokens          Tokens         `json:"tokens"`
	CacheHitRate    float64        `json:"cache_hit_rate"` // cached ÷ prompt tokens
	Seconds         Seconds        `json:"seconds"`
	TokensPerSecond float64        `json:"tokens_per_second"`
	Groups          []Group        `json:"groups"`
	Calibration     []Bucket       `json:"calibration"`
	SkippedLines    int            `json:"skipped_lines"`
	Log             string         `json:"log"`

	Failures []Failure  `json:"failures"` // the most frequent first, at most ten
	GroupBy  By         `json:"group_by"`
	From     *time.Time `json:"from,omitempty"` // the first and the last line counted
	To       *time.Time `json:"to,omitempty"`

	// For pages that show more than one grouping.
	Types  []Group `json:"-"`
	Models []Group `json:"-"`
	Days   []Group `json:"-"`
}

// Tokens are sums over all delegations. KeptOut is counted by Kept.Out, over CountedOn lines that say enough.
type Tokens struct {
	Prompt    int `json:"prompt"`
	Cached    int `json:"cached"`
	Generated int `json:"generated"`
	KeptOut   int `json:"kept_out_of_context"`
	CountedOn int `json:"kept_out_counted_on"`
}

// Seconds are quantiles of the time a delegation took, within one percent.
type Seconds struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
}

// Group is the delegations that share a key.
type Group struct {
	Key             string  `json:"key"`
	Delegations     int     `json:"delegations"`
	Accomplished    int     `json:"accomplished"`
	Proven          int     `json:"proven"`
	SuccessRate     float64 `json:"success_rate"`
	ProvenRate      float64 `json:"proven_rate"`
	FirstTryRate    float64 `json:"first_try_rate"`
	TokensGenerated int     `json:"tokens_generated"`
	KeptOut         int     `json:"kept_out_of_context"`
	Seconds         Seconds `json:"seconds"`
}

// Bucket is a tenth of the score: what it foretold and what came.
type Bucket struct {
	Bucket    string  `json:"bucket"` // 0.7-0.8
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
	N         int     `json:"n"`
}

// Failure is a way of not working out.
type Failure struct {
	Status string `json:"status"`
	Cause  string `json:"cause"`
	N      int    `json:"n"`
}
