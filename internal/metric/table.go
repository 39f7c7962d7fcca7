package metric

var (
	// short are the buckets of what should take less than a pass may.
	short = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	// long are those of what may take as long as a database does.
	long = []float64{0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
)

// The metrics of the loop.
var (
	Passes = Metric{Name: "trimtab_passes_total", Type: Counter, Labels: []string{"controller", "kind", "outcome"}, Help: "Passes over objects, by their outcome."}

	Causes = Metric{Name: "trimtab_pass_causes_total", Type: Counter, Labels: []string{"controller", "kind", "cause"}, Help: "Passes by what caused them: event, retry, or time, which is an interval, an appointment or a wake-up."}

	Failures = Metric{Name: "trimtab_failures_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes that ended with an error."}

	Retries = Metric{Name: "trimtab_retries_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes that were retries, of failures or of writes of the result."}

	Idle = Metric{Name: "trimtab_noop_passes_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes that succeeded and wrote nothing to their object."}

	PassSeconds = Metric{Name: "trimtab_pass_duration_seconds", Type: Histogram, Buckets: short, Labels: []string{"controller", "kind"}, Help: "How long passes took."}

	QueueSeconds = Metric{Name: "trimtab_queue_duration_seconds", Type: Histogram, Buckets: short, Labels: []string{"controller", "kind"}, Help: "How long objects waited from an event, or from the end of a rate limit, to the pass for it."}

	ReadySeconds = Metric{Name: "trimtab_time_to_ready_seconds", Type: Histogram, Buckets: long, Labels: []string{"controller", "kind"}, Help: "How long it took from the event about a new generation of an object until Ready was True."}

	Events = Metric{Name: "trimtab_events_total", Type: Counter, Labels: []string{"controller", "kind", "cause"}, Help: "Events that put an object into the queue: the object was created, updated or deleted, or a source reported a change."}

	Writes = Metric{Name: "trimtab_writes_total", Type: Counter, Labels: []string{"controller", "kind", "target", "result"}, Help: "Writes to the controller's own objects: metadata or status, ok or the reason of the API server."}

	OverBudget = Metric{Name: "trimtab_budget_exceeded_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes that wrote more often than they may."}

	RateLimited = Metric{Name: "trimtab_rate_limited_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes put off because the object was reconciled often enough."}

	StaleSkips = Metric{Name: "trimtab_stale_skips_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Passes put off because the cache lagged behind what the API server is known to have."}

	LiveReads = Metric{Name: "trimtab_live_fallback_total", Type: Counter, Labels: []string{"controller", "kind"}, Help: "Reads past a cache that lags, or may lag."}

	Vanished = Metric{Name: "trimtab_vanished_total", Type: Counter, Labels: []string{"controller", "kind", "reason"}, Help: "Objects that went past their finalizer, by what became of them."}

	Unwritable = Metric{Name: "trimtab_status_unwritable_total", Type: Counter, Labels: []string{"controller", "kind", "reason"}, Help: "Statuses that the API server does not take."}

	Objects = Metric{Name: "trimtab_objects", Type: Gauge, Labels: []string{"kind", "state", "failed", "reason"}, Help: "Objects by what their status says: state and reason in words of trimtab, otherwise Other, and whether something failed or somebody has to act."}
)

// The metrics of sources. Authors name them.
var (
	SourceUp = Metric{Name: "trimtab_source_up", Type: Gauge, Labels: []string{"controller", "source"}, Help: "1 if a source works, 0 if it has not synced yet or keeps failing."}

	SourceFailures = Metric{Name: "trimtab_source_failures_total", Type: Counter, Labels: []string{"controller", "source"}, Help: "Failed calls of a source, such as polls."}

	SourceEvents = Metric{Name: "trimtab_source_events_total", Type: Counter, Labels: []string{"controller", "source", "result"}, Help: "Events that a source received, by what became of them."}
)

// The metrics of components.
var (
	DependentOperations = Metric{Name: "trimtab_dependent_operations_total", Type: Counter, Labels: []string{"operator", "operation", "result"}, Help: "Requests that changed dependents of components, or were to change them."}

	DependentErrors = Metric{Name: "trimtab_dependent_errors_total", Type: Counter, Labels: []string{"operator", "reason"}, Help: "Requests for dependents of components that failed, by the reason of the API server."}

	Dependents = Metric{Name: "trimtab_dependents", Type: Gauge, Labels: []string{"operator", "status"}, Help: "Dependents of components by their health."}

	Clients = Metric{Name: "trimtab_component_clients", Type: Gauge, Labels: []string{"operator"}, Help: "Clusters and identities beside the operator's own with which it works on dependents."}

	ClientsCreated = Metric{Name: "trimtab_component_clients_created_total", Type: Counter, Labels: []string{"operator"}, Help: "Clients that were made for clusters and identities beside the operator's own."}
)

// The metrics of external resources.
var (
	ExternalCalls = Metric{Name: "trimtab_external_calls_total", Type: Counter, Labels: []string{"kind", "op", "class"}, Help: "Calls of external APIs, by what they came to: ok, Missing or the class of the error."}

	LeftBehind = Metric{Name: "trimtab_external_calls_left_behind", Type: Gauge, Labels: []string{"kind"}, Help: "Calls of drivers that have not returned although their time is over."}
)

// CertExpiry is about webhooks.
var CertExpiry = Metric{Name: "trimtab_webhook_cert_expiry_timestamp_seconds", Type: Gauge, Labels: []string{"operator"}, Help: "When the certificate that webhooks are served with expires, in seconds since 1970."}

// All returns every metric, in the order of documents.
func All() []Metric {
	return []Metric{
		Passes, Causes, Failures, Retries, Idle, PassSeconds, QueueSeconds, ReadySeconds, Events, Writes,
		OverBudget, RateLimited, StaleSkips, LiveReads, Vanished, Unwritable, Objects,
		SourceUp, SourceFailures, SourceEvents,
		DependentOperations, DependentErrors, Dependents, Clients, ClientsCreated,
		ExternalCalls, LeftBehind,
		CertExpiry,
	}
}
