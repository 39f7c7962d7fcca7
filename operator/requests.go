package operator

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/internal/running"
)

// requests counts the requests of a process to its API server, and remembers those that were forbidden. It grows with the
// resources that the operator uses, and not with objects.
type requests struct {
	mu  sync.Mutex
	all map[use]*tally
}

// use is a verb and a resource.
type use struct{ verb, group, resource, subresource string }

// tally is what came of the requests of one use.
type tally struct {
	count, refused  uint64
	at              time.Time // of the last one that was refused
	namespace, name string    // of its object
}

func newRequests() *requests { return &requests{all: map[use]*tally{}} }

// config returns c with its requests counted.
func (r *requests) config(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Wrap(func(base http.RoundTripper) http.RoundTripper { return counted{base, r} })
	return out
}

// counted sends requests and counts them.
type counted struct {
	base http.RoundTripper
	*requests
}

// RoundTrip implements http.RoundTripper.
func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.base.RoundTrip(r)
	of, namespace, name := useOf(r)
	if of.resource == "" {
		return response, err // such as discovery
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.all[of]
	if t == nil {
		t = &tally{}
		c.all[of] = t
	}
	t.count++
	if err == nil && response.StatusCode == http.StatusForbidden {
		t.refused++
		t.at, t.namespace, t.name = time.Now(), namespace, name
	}
	return response, err
}

// useOf returns what a request does to which object. A path is /api/VERSION or /apis/GROUP/VERSION, then /namespaces/NAMESPACE if
// the resource is in one, and then /RESOURCE/NAME/SUBRESOURCE. An API server may have a path of its own before that.
func useOf(r *http.Request) (of use, namespace, name string) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	root := slices.IndexFunc(path, func(part string) bool { return part == "api" || part == "apis" })
	if root < 0 {
		return use{}, "", ""
	}
	path = path[root:]
	if path[0] == "apis" && len(path) > 1 {
		of.group, path = path[1], path[1:]
	}
	path = path[min(2, len(path)):]
	if len(path) > 2 && path[0] == "namespaces" && path[2] != "status" && path[2] != "finalize" {
		namespace, path = path[1], path[2:]
	}
	path = append(path, "", "", "")
	of.resource, name, of.subresource = path[0], path[1], path[2]
	of.verb = verbOf(r, name != "")
	if of.verb == "create" && of.subresource == "" {
		name = "" // no permission to create something is for a name
	}
	return of, namespace, name
}

// verbOf returns the verb of a permission.
func verbOf(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	switch watch := r.URL.Query().Get("watch"); {
	case watch == "true" || watch == "1":
		return "watch"
	case named:
		return "get"
	}
	return "list"
}

// describe returns what was counted, most often first. Whether a permission is missing is asked now, so nothing is asked unless
// somebody wants to know.
func (r *requests) describe(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface) (all []running.Requests) {
	r.mu.Lock()
	tallies := make(map[use]tally, len(r.all))
	for of, t := range r.all {
		tallies[of] = *t
	}
	r.mu.Unlock()
	for _, of := range slices.Collect(maps.Keys(tallies)) {
		t := tallies[of]
		p := permission{group: of.group, resource: of.resource, verbs: []string{of.verb}}
		if of.subresource != "" {
			p.resource += "/" + of.subresource
		}
		one := running.Requests{Verb: of.verb, Resource: strings.TrimPrefix(p.String(), of.verb+" "), Count: t.count, Refused: t.refused}
		if t.refused > 0 {
			needs := authorizationv1.ResourceAttributes{Verb: of.verb, Group: of.group, Resource: of.resource, Subresource: of.subresource, Namespace: t.namespace, Name: t.name}
			one.Last = &running.Refusal{At: t.at, Namespace: t.namespace, Name: t.name, Verdict: verdict(ctx, reviews, needs)}
			needs.Name = ""
			one.Last.Permission = wording(needs)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b running.Requests) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	return all
}

func verdict(ctx context.Context, reviews authorizationclient.SelfSubjectAccessReviewInterface, needs authorizationv1.ResourceAttributes) running.Verdict {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needs}}
	answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return running.Unknown
	case answer.Status.Allowed:
		return running.Permitted
	}
	return running.Missing
}
