package main

import "github.com/trimtab-dev/trimtab/internal/metric"

// monitoring returns the dashboard and the alerts of trimtab's metrics.
func monitoring() (files, error) {
	dashboard, err := metric.Scope{}.Dashboard()
	return files{"docs/metrics/dashboard.json": dashboard, "docs/metrics/alerts.yaml": metric.Scope{}.Alerts()}, err
}
