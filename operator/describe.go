package operator

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/internal/running"
)

// describedWithin is how long the API server may take to say whether permissions are missing.
const describedWithin = 5 * time.Second

// describe says what the process is, and what is wrong with it. It works at any time after the process has begun to serve.
func (p *process) describe(r *http.Request) running.Operator {
	ctx, cancel := context.WithTimeout(r.Context(), describedWithin)
	defer cancel()
	o := running.Operator{Name: p.design.options.Name, Version: version(), Namespace: p.target.namespace, Started: p.began, Controllers: p.design.described()}
	if p.settings.leaderElect {
		o.Lease = p.lease()
	}
	o.Failing, o.Checks = p.health.failing(r)
	select {
	case <-p.mounted: // what follows was set up before that
	default:
		return o
	}
	select {
	case <-p.elected:
		o.Leads = mounted{process: p}.Leads()
	default:
	}
	o.Missing, o.Grant = p.access.lacks(), p.access.grant
	o.Requests = p.requests.describe(ctx, p.access.reviews)
	return o
}

// described returns the controllers that have a name, which are those of trimtab.
func (d *design) described() (all []running.Controller) {
	for name, kind := range d.named {
		all = append(all, running.Controller{Name: name, APIVersion: kind.GroupVersion().String(), Kind: kind.Kind})
	}
	slices.SortFunc(all, func(a, b running.Controller) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// failing returns the checks that fail, and how many there are.
func (h *health) failing(r *http.Request) (failing []running.Check, all int) {
	for _, endpoint := range []string{"livez", "readyz"} {
		checks := h.checks(endpoint)
		all += len(checks)
		for _, problem := range problemsOf(checks, r) {
			failing = append(failing, running.Check{Endpoint: endpoint, Name: problem.name, Problem: problem.err.Error()})
		}
	}
	return failing, all
}

// lacks returns the permissions that were missing when they were asked for last.
func (a *access) lacks() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing
}

// serveDescription writes what describe returns.
func serveDescription(w http.ResponseWriter, r *http.Request, describe func(*http.Request) running.Operator) {
	text, err := json.Marshal(describe(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}
