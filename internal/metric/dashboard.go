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
func (s Scope) panels() []panel {
	const window = "$__rate_interval"
	controller := "{{controller}}"
	return []panel{
		{"Passes", "By outcome. Done and After are successes.", "ops", []query{{s.rate(Passes, window, "controller", "outcome"), controller + " {{outcome}}"}}},
		{"Why passes begin", "An operator at rest has few, and by time.", "ops", []query{{s.rate(Causes, window, "controller", "cause"), controller + " {{cause}}"}}},
		{"Failures and retries", "Failures without retries wait for somebody to act.", "ops", []query{
			{s.rate(Failures, window, "controller"), controller + " failures"}, {s.rate(Retries, window, "controller"), controller + " retries"},
		}},
		{"Events", "What puts objects into the queue.", "ops", []query{{s.rate(Events, window, "controller", "cause"), controller + " {{cause}}"}}},
		{"Time in the queue", "From an event to its pass. If it grows, there are too few workers, or passes take too long.", "s", []query{
			{s.quantile(QueueSeconds, "0.5", window, "controller"), controller + " p50"}, {s.quantile(QueueSeconds, "0.99", window, "controller"), controller + " p99"},
		}},
		{"Duration of passes", "", "s", []query{
			{s.quantile(PassSeconds, "0.5", window, "controller"), controller + " p50"}, {s.quantile(PassSeconds, "0.99", window, "controller"), controller + " p99"},
		}},
		{"Time to Ready", "From a new generation until Ready is True: what users wait for.", "s", []query{
			{s.quantile(ReadySeconds, "0.5", window, "controller"), controller + " p50"}, {s.quantile(ReadySeconds, "0.99", window, "controller"), controller + " p99"},
		}},
		{"Objects by state", "", "short", []query{{s.sum(Objects, "", "kind", "state"), "{{kind}} {{state}}"}}},
		{"Objects that failed, by reason", "", "short", []query{{s.sum(Objects, `failed="true"`, "kind", "reason"), "{{kind}} {{reason}}"}}},
		{"Writes to own objects", "", "ops", []query{{s.rate(Writes, window, "controller", "target", "result"), controller + " {{target}} {{result}}"}}},
		{"Passes that wrote nothing", "As a share of all passes.", "percentunit", []query{{s.rate(Idle, window, "controller") + " / " + s.rate(Passes, window, "controller"), controller}}},
		{"Lag of the cache", "Passes put off, and reads past the cache.", "ops", []query{
			{s.rate(StaleSkips, window, "controller"), controller + " put off"}, {s.rate(LiveReads, window, "controller"), controller + " read live"},
		}},
		{"Limits", "Passes put off because their object was reconciled often enough.", "ops", []query{{s.rate(RateLimited, window, "controller"), controller}}},
		{"Sources that work", "0 has not synced yet, or keeps failing.", "short", []query{{s.sum(SourceUp, "", "controller", "source"), controller + " {{source}}"}}},
		{"Sources", "", "ops", []query{
			{s.rate(SourceFailures, window, "controller", "source"), controller + " {{source}} failures"},
			{s.rate(SourceEvents, window, "controller", "source", "result"), controller + " {{source}} {{result}}"},
		}},
		{"What should not happen", "Passes over their budget, statuses that cannot be written, objects that went past their finalizer.", "short", []query{
			{s.growth(OverBudget, window, "controller"), controller + " over budget"},
			{s.growth(Unwritable, window, "controller", "reason"), controller + " status {{reason}}"},
			{s.growth(Vanished, window, "controller", "reason"), controller + " vanished {{reason}}"},
		}},
		{"Dependents of components", "", "short", []query{{s.sum(Dependents, "", "operator", "status"), "{{operator}} {{status}}"}}},
		{"Requests for dependents", "", "ops", []query{
			{s.rate(DependentOperations, window, "operator", "operation", "result"), "{{operator}} {{operation}} {{result}}"},
			{s.rate(DependentErrors, window, "operator", "reason"), "{{operator}} {{reason}}"},
		}},
		{"Other clusters and identities", "", "short", []query{
			{s.sum(Clients, "", "operator"), "{{operator}} in use"}, {s.growth(ClientsCreated, window, "operator"), "{{operator}} made"},
		}},
		{"Calls of external APIs", "", "ops", []query{{s.rate(ExternalCalls, window, "kind", "op", "class"), "{{kind}} {{op}} {{class}}"}}},
		{"Calls that did not return in time", "", "short", []query{{s.sum(LeftBehind, "", "kind"), "{{kind}}"}}},
	}
}

// Dashboard returns a Grafana dashboard, in JSON, that asks for its data source when it is imported.
func (s Scope) Dashboard() ([]byte, error) {
	source := map[string]any{"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
	var graphs []any
	for i, p := range s.panels() {
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
		"title": s.id("trimtab operators"), "uid": s.id("trimtab-operators"), "schemaVersion": 39, "tags": []any{"trimtab", "kubernetes"},
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

func (s Scope) alerts() []alert {
	return []alert{
		{
			"TrimtabPassesFail", s.rate(Failures, "15m", "controller", "kind") + " / " + s.rate(Passes, "15m", "controller", "kind") + " > 0.5", "15m", "warning",
			"More than half of the passes of {{ $labels.controller }} fail.", "Read the reason in the condition Ready of the objects, or in the log.",
		},
		{
			"TrimtabObjectsFailed", s.sum(Objects, `failed="true"`, "kind", "reason") + " > 0", "30m", "warning",
			"Objects of kind {{ $labels.kind }} have been failed for half an hour: {{ $labels.reason }}.", "List the objects with kubectl; their message says what to do.",
		},
		{
			"TrimtabQueueSlow", s.quantile(QueueSeconds, "0.99", "15m", "controller") + " > 60", "15m", "warning",
			"Objects of {{ $labels.controller }} wait more than a minute for a pass.", "Raise Options.Workers, or find out what passes wait for.",
		},
		{
			"TrimtabCacheLags", s.rate(StaleSkips, "15m", "controller") + " > 1", "15m", "warning",
			"The cache of {{ $labels.controller }} lags behind the API server.", "Look for throttled requests and for restarts of the API server.",
		},
		{
			"TrimtabStatusUnwritable", s.growth(Unwritable, "1h", "controller", "reason") + " > 0", "0m", "critical",
			"The API server does not take the status of objects of {{ $labels.controller }}: {{ $labels.reason }}.", "Compare the CRD and the role with those that the operator prints.",
		},
		{
			"TrimtabVanished", s.growthOf(Vanished, `reason!="CleanedUp"`, "1h", "controller", "reason") + " > 0", "0m", "warning",
			"Objects of {{ $labels.controller }} went past their finalizer: {{ $labels.reason }}.", "Read the events of the namespace; something may have to be cleaned up by hand.",
		},
		{
			"TrimtabSourceDown", s.sum(SourceUp, "", "controller", "source") + " == 0", "10m", "warning",
			"The source {{ $labels.source }} of {{ $labels.controller }} does not work.", "Read in the log why it fails; until it works, objects are reconciled by time alone.",
		},
		{
			"TrimtabBudgetExceeded", s.growth(OverBudget, "1h", "controller") + " > 0", "0m", "info",
			"Passes of {{ $labels.controller }} write more often than they may.", "Report it: it is a bug, or two controllers write to one object.",
		},
		{
			"TrimtabCallsLeftBehind", s.sum(LeftBehind, "", "kind") + " > 0", "10m", "warning",
			"Calls for objects of kind {{ $labels.kind }} have not returned although their time is over.", "Have the driver honour its context.",
		},
		{
			"TrimtabWebhookCertExpiring", s.min(CertExpiry, "operator") + " - time() < 7 * 86400", "1h", "critical",
			"The certificate of the webhooks of {{ $labels.operator }} expires in less than a week.", "Read in the log of the operator why it is not renewed; with --webhook-cert-dir, look at what issues it.",
		},
	}
}

// Alerts returns rules for Prometheus, in YAML.
func (s Scope) Alerts() []byte {
	var out strings.Builder
	out.WriteString("# Generated from the metrics of trimtab.\ngroups:\n- name: " + s.id("trimtab") + "\n  rules:\n")
	for _, a := range s.alerts() {
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

// Groups returns the groups of the same rules, as fields of an object of the Prometheus Operator.
func (s Scope) Groups() []any {
	var rules []any
	for _, a := range s.alerts() {
		rules = append(rules, map[string]any{
			"alert": a.name, "expr": a.expr, "for": a.wait,
			"labels":      map[string]any{"severity": a.severity},
			"annotations": map[string]any{"summary": a.summary, "description": a.todo},
		})
	}
	return []any{map[string]any{"name": s.id("trimtab"), "rules": rules}}
}
