package kubesim

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// ServeWebhooks lets h answer for all webhooks that webhook configurations and CRDs name, such as the mux with which
// an operator's webhooks are registered. It is called in the process, with the path of the webhook; addresses and
// certificates are ignored. Nil refuses connections, so that requests fail or not as the failure policy says.
//
// Before the first call, configurations are stored and nothing is called, and custom resources in another version
// than the stored one are refused if a webhook would convert them.
func (c *Cluster) ServeWebhooks(h http.Handler) {
	c.server.CallWebhooks(apiserver.NewWebhooks(webhooks{c, h}))
}

// webhooks carries requests to webhooks.
type webhooks struct {
	cluster *Cluster
	handler http.Handler
}

type webhookKey struct{}

// RoundTrip calls a webhook. As over a connection, its context has nothing of the caller's. What it writes does not
// let the cluster's controllers act, who may be waiting for it.
func (w webhooks) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.handler == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	ctx, cancel := context.WithCancel(context.WithValue(w.cluster.t.Context(), webhookKey{}, true))
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	return apiserver.Serve(w.handler, r.WithContext(ctx)) //nolint:contextcheck // nothing of the caller's is inherited
}

// furnishWebhooks puts the configurations in files into a cluster.
func furnishWebhooks(server *apiserver.Server, db *store.DB, files fs.FS) error {
	configurations, err := apiserver.ReadWebhooks(files)
	if err != nil {
		return err
	}
	encoded, err := server.EncodeWebhooks(configurations)
	for _, s := range encoded {
		db.Load(s.Key, s.Data)
	}
	return err
}
