package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// attached is a client of the external API, with the endpoint that it talks to.
type attached struct {
	client any
	// endpoint is empty if the driver does not distinguish endpoints.
	endpoint string
	// end cancels the context that Connect received for the client.
	end context.CancelFunc
}

// close ends a client, and closes it if it implements io.Closer.
func (a *attached) close() {
	a.end()
	if closer, ok := a.client.(io.Closer); ok {
		_, _ = guarded("Close", func() (struct{}, error) { return struct{}{}, closer.Close() })
	}
}

// attach returns a function that makes clients whose endpoint is known. The context that Connect
// receives lives as long as the client, and ends earlier only if ctx ends while Connect runs. A
// client whose endpoint cannot be determined yet is kept for the next try, unless it was denied.
func attach(connect func(context.Context) (any, error), endpoint func(context.Context, any) (string, error), errs Errors) func(context.Context) (attached, error) {
	var kept *attached // there is one call of Connect at a time
	return func(ctx context.Context) (attached, error) {
		if kept == nil {
			a, err := live(ctx, connect)
			if err != nil || endpoint == nil {
				return a, err
			}
			kept = &a
		}
		name, err := guarded("Endpoint", func() (string, error) { return endpoint(ctx, kept.client) })
		if err == nil {
			err = fitEndpoint("Options.Endpoint", name)
		}
		if err != nil {
			if classify(err, errs, false).class == decide.ClassDenied {
				kept.close()
				kept = nil
			}
			return attached{}, fmt.Errorf("ask which endpoint this is: %w", err)
		}
		a := *kept
		kept, a.endpoint = nil, name
		return a, nil
	}
}

// longestEndpoint bounds the name of an endpoint in a record.
const longestEndpoint = 512

// fitEndpoint returns what is wrong with the name of an endpoint; nil if it is valid. The name is
// recorded on every object, where everyone who may read objects can read it.
func fitEndpoint(of, name string) error {
	switch safe := plain.Safe(name); {
	case strings.Contains(safe, plain.Hidden) && !strings.Contains(name, plain.Hidden):
		return fmt.Errorf("the driver's %s returns what looks like credentials for an endpoint (%q); it must return a name without credentials", of, safe)
	case safe != name:
		return fmt.Errorf("the driver's %s returns the endpoint %q, which is no text", of, safe)
	case len(name) > longestEndpoint:
		return fmt.Errorf("the driver's %s returns the name of an endpoint of %d bytes; %d can be recorded", of, len(name), longestEndpoint)
	}
	return nil
}

// live calls Connect.
func live(ctx context.Context, connect func(context.Context) (any, error)) (attached, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, end)
	client, err := guarded("Connect", func() (any, error) { return connect(life) })
	a := attached{client: client, end: end}
	switch {
	case err != nil:
		end()
	case !inTime():
		a.close()
		err = errors.New("the driver took too long to connect")
	}
	return a, err
}

// here returns the place of the operator and the object, without the endpoint.
func (e *Engine) here(ctx context.Context, r Run) (record.Place, error) {
	uid, err := e.cluster.get(ctx, r.Live())
	if err != nil {
		return record.Place{}, err
	}
	return record.Place{Cluster: uid, Installation: r.Terms().Installation, Object: client.ObjectKeyFromObject(r.Object()).String()}, nil
}

// pin completes a record that does not say where its resource is, once the resource is seen: an
// operator wrote it that did not distinguish endpoints or installations.
func (p *pass) pin(ctx context.Context) error {
	r := p.record
	r.Place = r.Or(p.here)
	if r.Place == p.record.Place || !r.Exists() || !p.facts.Seen.Ours() || p.facts.Deleting || p.facts.Paused != decide.PauseNone {
		return nil
	}
	if err := p.rewrite(ctx, r); err != nil {
		return fmt.Errorf("record where the resource is: %w", err)
	}
	return nil
}

// Selects reports whether this installation of the operator is responsible for the object; false
// if another one is.
func (e *Engine) Selects(ctx context.Context, r Run) bool {
	ours, value := r.Terms().Installation, r.Object().GetAnnotations()[api.AnnotationExternal]
	if ours == "" || !strings.Contains(value, `"installation":`) || strings.Contains(value, fmt.Sprintf(`"installation":%q`, ours)) {
		return true
	}
	there, err := record.Parse(value)
	if err != nil || there.Installation == "" || there.Installation == ours {
		return true
	}
	if there.UID != string(r.Object().GetUID()) {
		here, err := e.here(ctx, r)
		if err != nil || there.Cluster != here.Cluster || there.Object != here.Object {
			return true // a copy from another place
		}
	}
	t := e.tracks.of(r.Object().GetUID())
	if !t.warned {
		t.warned = true
		r.Log().Info("left alone: another installation of the operator works on the object", "installation", there.Installation, "ours", ours)
	}
	return false
}
