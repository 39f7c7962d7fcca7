package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// access asks the API server whether the process has the permissions it needs. It stops asking
// once all are granted, because an idle operator must not cause requests. A permission that is
// revoked later shows in the checks of the cache and in the status of objects.
type access struct {
	grant   string // the command that grants the permissions
	needed  []authorizationv1.ResourceAttributes
	reviews authorizationclient.SelfSubjectAccessReviewInterface
	log     logr.Logger

	mu      sync.Mutex
	problem error    // nil once all are granted
	missing []string // the permissions that problem names
}

var errNotAsked = errors.New("the API server has not answered yet")

// attributes returns the attributes to check for p, one for each verb.
func (p permission) attributes(namespace string) []authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(p.resource, "/")
	var out []authorizationv1.ResourceAttributes
	if p.cluster {
		namespace = metav1.NamespaceAll
	}
	names := p.names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range p.verbs {
		for _, name := range names {
			out = append(out, authorizationv1.ResourceAttributes{
				Group: p.group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: namespace, Name: name,
			})
		}
	}
	return out
}

// check returns an error that names the missing permissions, if any.
func (a *access) check(*http.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.problem
}

// watch asks for the missing permissions every second until all are granted or ctx ends.
func (a *access) watch(ctx context.Context) {
	for {
		missing, problem := a.ask(ctx)
		a.mu.Lock()
		news := problem != nil && a.problem.Error() != problem.Error()
		a.problem, a.missing = problem, missing
		a.mu.Unlock()
		if problem == nil {
			return
		}
		if news && ctx.Err() == nil {
			a.log.Error(nil, problem.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// ask removes the granted permissions from needed, and returns the others.
func (a *access) ask(ctx context.Context) ([]string, error) {
	var missing []authorizationv1.ResourceAttributes
	for _, attributes := range a.needed {
		answer, err := a.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("check own permissions: %w", err)
		}
		if !answer.Status.Allowed {
			missing = append(missing, attributes)
		}
	}
	if a.needed = missing; len(missing) == 0 {
		return nil, nil
	}
	var words []string
	for _, m := range missing {
		words = append(words, wording(m))
	}
	slices.Sort(words)
	return words, fmt.Errorf("not permitted: %s; grant with: %s", strings.Join(words, ", "), a.grant)
}

// wording returns the permission in the notation of kubectl auth can-i.
func wording(a authorizationv1.ResourceAttributes) string {
	p := permission{group: a.Group, resource: a.Resource, verbs: []string{a.Verb}}
	if a.Name != "" {
		p.names = []string{a.Name}
	}
	if a.Subresource != "" {
		p.resource += "/" + a.Subresource
	}
	if a.Namespace != "" {
		return p.String() + " in namespace " + a.Namespace
	}
	return p.String()
}
