package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/discovery"
)

// Served is what an API server serves.
type Served struct {
	// Version is that of Kubernetes, such as "v1.37.1".
	Version string
	// APIs are the versions of its APIs, such as "apps/v1", and their kinds, such as "apps/v1/Deployment", in order.
	APIs []string
}

// APIs knows what an API server serves.
type APIs struct {
	client *discovery.DiscoveryClient
	// turn has a token for the one who may ask, and guards the rest.
	turn   chan struct{}
	served Served
	at     time.Time // zero before it was asked
}

// newAPIs returns what knows nothing yet.
func newAPIs(client *discovery.DiscoveryClient) *APIs {
	return &APIs{client: client, turn: make(chan struct{}, 1)}
}

// Get returns what is served, and when that was so. It asks unless it has done so within the recent past. Of an API
// whose own server does not answer, it returns what was served before: that the server is down does not mean that
// the API is gone.
func (a *APIs) Get(ctx context.Context, recent time.Duration) (Served, time.Time, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return Served{}, time.Time{}, fmt.Errorf("wait for another who asks which APIs are served: %w", ctx.Err())
	}
	now := time.Now()
	if !a.at.IsZero() && now.Sub(a.at) < recent {
		return a.served, a.at, nil
	}
	served, err := a.ask(ctx)
	if err != nil {
		return Served{}, now, err
	}
	a.served, a.at = served, now
	return served, now, nil
}

// ask asks what is served.
func (a *APIs) ask(ctx context.Context) (Served, error) {
	version, err := a.client.ServerVersionWithContext(ctx)
	if err != nil {
		return Served{}, fmt.Errorf("ask for the version of the API server: %w", err)
	}
	groups, resources, err := a.client.ServerGroupsAndResourcesWithContext(ctx)
	down, isDown := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !isDown {
		return Served{}, fmt.Errorf("ask which APIs are served: %w", err)
	}
	all := map[string]bool{}
	for _, g := range groups {
		for _, v := range g.Versions {
			all[v.GroupVersion] = true
		}
	}
	for _, list := range resources {
		for _, r := range list.APIResources {
			all[list.GroupVersion+"/"+r.Kind] = true
		}
	}
	if isDown {
		for g := range down.Groups {
			a.recall(g.String(), all)
		}
	}
	return Served{Version: version.GitVersion, APIs: slices.Sorted(maps.Keys(all))}, nil
}

// recall adds what was served before of an API whose own server does not answer.
func (a *APIs) recall(version string, to map[string]bool) {
	to[version] = true
	for _, kind := range a.served.APIs {
		if strings.HasPrefix(kind, version+"/") {
			to[kind] = true
		}
	}
}
