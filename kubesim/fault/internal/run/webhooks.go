package run

import (
	"context"
	"net/http"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// webhooks is a server that takes what an operator registers and listens nowhere, so that it needs neither
// certificates nor a port.
type webhooks struct {
	process *Process

	mu  sync.Mutex
	mux *http.ServeMux
}

var _ webhook.Server = &webhooks{}

// NeedLeaderElection reports that replicas without the lease have webhooks, too.
func (*webhooks) NeedLeaderElection() bool { return false }

// Register notes a webhook.
func (w *webhooks) Register(path string, hook http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mux.Handle(path, hook)
	w.process.record.Process(w.process.number, func(h *history.Process) { h.Webhooks = append(h.Webhooks, path) })
}

// Start waits until the process ends.
func (*webhooks) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// StartedChecker is satisfied at once.
func (*webhooks) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux has what is registered.
func (w *webhooks) WebhookMux() *http.ServeMux { return w.mux }
