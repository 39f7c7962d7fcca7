package metric

import (
	"bytes"
	"encoding/json"
	"strings"
)

// panel is a graph of the dashboard.
type panel struct {
	title, help, unit string
	queries           []query
}

// query is one query of a panel.
type query struct{ expr, legend string }

// panels are those of the dashboard, two in a row.
func panels() []panel {
	const window = "$__rate_interval"
	controller := "{{controller}}"
	return []panel{
		{"Passes", "By outcome. Done and After are successes.", "ops", []query{{Passes.rate(window, "controller", "outcome"), controller + " {{outcome}}"}}},
		{"Why passes begin", "An operator at rest has few, and by time.", "ops", []query{{Causes.rate(window, "controller", "cause"), controller + " {{cause}}"}}},
		{"Failures and retries", "Failures without retries wait for somebody to act.", "ops", []query{
			{Failures.rate(window, "controller"), controller + " failures"}, {Retries.rate(window, "controller"), controller + " retries"},
		}},
		{"Events", "What puts objects into the queue.", "ops", []query{{Events.rate(window, "controller", "cause"), controller + " {{cause}}"}}},
		{"Time in the queue", "From an event to its pass. If it grows, there are too few workers, or passes take too long.", "s", []query{
			{QueueSeconds.quantile("0.5", window, "controller"), controller + " p50"}, {QueueSeconds.quantile("0.99", window, "controller"), controller + " p99"},
		}},
		{"Duration of passes", "", "s", []query{
			{PassSeconds.quantile("0.5", window, "controller"), controller + " p50"}, {PassSeconds.quantile("0.99", window, "controller"), controller + " p99"},
		}},
		{"Time to Ready", "From a new generation until Ready is True: what users wait for.", "s", []query{
			{ReadySeconds.quantile("0.5", window, "controller"), controller + " p50"}, {ReadySeconds.quantile("0.99", window, "controller"), controller + " p99"},
		}},
		{"Objects by state", "", "short", []query{{Objects.sum("", "kind", "state"), "{{kind}} {{state}}"}}},
		{"Objects that failed, by reason", "", "short", []query{{Objects.sum(`failed="true"`, "kind", "reason"), "{{kind}} {{reason}}"}}},
		{"Writes to own objects", "", "ops", []query{{Writes.rate(window, "controller", "target", "result"), controller + " {{target}} {{result}}"}}},
		{"Passes that wrote nothing", "As a share of all passes.", "percentunit", []query{{Idle.rate(window, "controller") + " / " + Passes.rate(window, "controller"), controller}}},
		{"Lag of the cache", "Passes put off, and reads past the cache.", "ops", []query{
			{StaleSkips.rate(window, "controller"), controller + " put off"}, {LiveReads.rate(window, "controller"), controller + " read live"},
		}},
		{"Limits", "Passes put off because their object was reconciled often enough.", "ops", []query{{RateLimited.rate(window, "controller"), controller}}},
		{"Sources that work", "0 has not synced yet, or keeps failing.", "short", []query{{SourceUp.sum("", "controller", "source"), controller + " {{source}}"}}},
		{"Sources", "", "ops", []query{
			{SourceFailures.rate(window, "controller", "source"), controller + " {{source}} failures"},
			{SourceEvents.rate(window, "controller", "source", "result"), controller + " {{source}} {{result}}"},
		}},
		{"What should not happen", "Passes over their budget, statuses that cannot be written, objects that went past their finalizer.", "short", []query{
			{OverBudget.growth(window, "controller"), controller + " over budget"},
			{Unwritable.growth(window, "controller", "reason"), controller + " status {{reason}}"},
			{Vanished.growth(window, "controller", "reason"), controller + " vanished {{reason}}"},
		}},
		{"Dependents of components", "", "short", []query{{Dependents.sum("", "operator", "status"), "{{operator}} {{status}}"}}},
		{"Requests for dependents", "", "ops", []query{
			{DependentOperations.rate(window, "operator", "operation", "result"), "{{operator}} {{operation}} {{result}}"},
			{DependentErrors.rate(window, "operator", "reason"), "{{operator}} {{reason}}"},
		}},
		{"Other clusters and identities", "", "short", []query{
			{Clients.sum("", "operator"), "{{operator}} in use"}, {ClientsCreated.growth(window, "operator"), "{{operator}} made"},
		}},
		{"Calls of external APIs", "", "ops", []query{{ExternalCalls.rate(window, "kind", "op", "class"), "{{kind}} {{op}} {{class}}"}}},
		{"Calls that did not return in time", "", "short", []query{{LeftBehind.sum("", "kind"), "{{kind}}"}}},
	}
}

// Dashboard returns a Grafana dashboard, in JSON, that asks for its data source when it is imported.
func Dashboard() ([]byte, error) {
	source := map[string]any{"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
	var graphs []any
	for i, p := range panels() {
		var targets []any
		for n, q := range p.queries {
			targets = append(targets, map[string]any{
				"datasource": source, "expr": q.expr, "legendFormat": q.legend, "refId": string(rune('A' + n)),
			})
		}
		graphs = append(graphs, map[string]any{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.help, "datasource": source, "targets": targets,
			"gridPos":     map[string]any{"x": i % 2 * 12, "y": i / 2 * 8, "w": 12, "h": 8},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
		})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(map[string]any{
		"__inputs": []any{map[string]any{
			"name": "DS_PROMETHEUS", "label": "Prometheus", "type": "datasource", "pluginId": "prometheus", "pluginName": "Prometheus",
		}},
		"title": "trimtab operators", "uid": "trimtab-operators", "schemaVersion": 39, "tags": []any{"trimtab", "kubernetes"},
		"time": map[string]any{"from": "now-6h", "to": "now"}, "refresh": "30s", "panels": graphs,
	})
	return out.Bytes(), err
}

// alert is a rule of Prometheus.
type alert struct {
	name, expr, wait, severity string
	// summary is one line; todo says what to do.
	summary, todo string
}

func alerts() []alert {
	return []alert{
		{
			"TrimtabPassesFail", Failures.rate("15m", "controller", "kind") + " / " + Passes.rate("15m", "controller", "kind") + " > 0.5", "15m", "warning",
			"More than half of the passes of {{ $labels.controller }} fail.", "Read the reason in the condition Ready of the objects, or in the log.",
		},
		{
			"TrimtabObjectsFailed", Objects.sum(`failed="true"`, "kind", "reason") + " > 0", "30m", "warning",
			"Objects of kind {{ $labels.kind }} have been failed for half an hour: {{ $labels.reason }}.", "List the objects with kubectl; their message says what to do.",
		},
		{
			"TrimtabQueueSlow", QueueSeconds.quantile("0.99", "15m", "controller") + " > 60", "15m", "warning",
			"Objects of {{ $labels.controller }} wait more than a minute for a pass.", "Raise Options.Workers, or find out what passes wait for.",
		},
		{
			"TrimtabCacheLags", StaleSkips.rate("15m", "controller") + " > 1", "15m", "warning",
			"The cache of {{ $labels.controller }} lags behind the API server.", "Look for throttled requests and for restarts of the API server.",
		},
		{
			"TrimtabStatusUnwritable", Unwritable.growth("1h", "controller", "reason") + " > 0", "0m", "critical",
			"The API server does not take the status of objects of {{ $labels.controller }}: {{ $labels.reason }}.", "Compare the CRD and the role with those that the operator prints.",
		},
		{
			"TrimtabVanished", Vanished.growthOf(`reason!="CleanedUp"`, "1h", "controller", "reason") + " > 0", "0m", "warning",
			"Objects of {{ $labels.controller }} went past their finalizer: {{ $labels.reason }}.", "Read the events of the namespace; something may have to be cleaned up by hand.",
		},
		{
			"TrimtabSourceDown", SourceUp.sum("", "controller", "source") + " == 0", "10m", "warning",
			"The source {{ $labels.source }} of {{ $labels.controller }} does not work.", "Read in the log why it fails; until it works, objects are reconciled by time alone.",
		},
		{
			"TrimtabBudgetExceeded", OverBudget.growth("1h", "controller") + " > 0", "0m", "info",
			"Passes of {{ $labels.controller }} write more often than they may.", "Report it: it is a bug, or two controllers write to one object.",
		},
		{
			"TrimtabCallsLeftBehind", LeftBehind.sum("", "kind") + " > 0", "10m", "warning",
			"Calls for objects of kind {{ $labels.kind }} have not returned although their time is over.", "Have the driver honour its context.",
		},
	}
}

// Alerts returns rules for Prometheus, in YAML.
func Alerts() []byte {
	var out strings.Builder
	out.WriteString("# Generated from the metrics of trimtab; go run ./internal/gen.\ngroups:\n- name: trimtab\n  rules:\n")
	for _, a := range alerts() {
		for _, line := range []string{
			"  - alert: " + a.name,
			"    expr: '" + strings.ReplaceAll(a.expr, "'", "''") + "'",
			"    for: " + a.wait,
			"    labels:", "      severity: " + a.severity,
			"    annotations:", "      summary: '" + a.summary + "'", "      description: '" + a.todo + "'",
		} {
			out.WriteString(line + "\n")
		}
	}
	return []byte(out.String())
}

// Table returns the table of metrics in docs/metrics.md.
func Table() string {
	var out strings.Builder
	out.WriteString("| Metric | Type | Labels | What it measures |\n|---|---|---|---|\n")
	for _, m := range All() {
		out.WriteString("| `" + m.Name + "` | " + string(m.Type) + " | `" + strings.Join(m.Labels, "`, `") + "` | " + m.Help + " |\n")
	}
	return out.String()
}
