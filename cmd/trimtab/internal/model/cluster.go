package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/kubectl"
)

var (
	errElsewhere    = errors.New("they are in another cluster; ask there")
	errUnreadable   = errors.New("its inventory cannot be read")
	errGone         = errors.New("a ConfigMap with a part of its inventory does not exist")
	errNoDeployment = errors.New("its Deployment cannot be read, so only the Pod of the leader is looked at")
)

// Cluster reads a cluster. What it has listed, it does not list again, so make one for each question.
type Cluster struct {
	reader   client.Reader
	mapper   meta.RESTMapper
	server   discovery.ServerResourcesInterface
	now      func() time.Time
	commands kubectl.Commands // those that are printed

	mu     sync.Mutex
	unseen map[string]string // why something could not be read

	served    []served // nil before they are needed
	listed    map[string]map[types.UID][]metav1.PartialObjectMetadata
	schemas   map[string]map[string]any // the fields of custom resources, by definition and version
	operators *operators                // nil before they are needed
}

// served is a kind whose objects can be listed.
type served struct {
	schema.GroupVersionKind
	namespaced bool
}

// New returns a Cluster that reads through reader. server lists the kinds that there are. Flags are those of kubectl that name the
// cluster; printed commands repeat them.
func New(reader client.Reader, mapper meta.RESTMapper, server discovery.ServerResourcesInterface, flags ...string) *Cluster {
	return &Cluster{
		reader: reader, mapper: mapper, server: server, now: time.Now, commands: kubectl.Commands{Flags: flags, Mapper: mapper},
		unseen: map[string]string{}, listed: map[string]map[types.UID][]metav1.PartialObjectMetadata{}, schemas: map[string]map[string]any{},
	}
}

// Ref names an object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// String returns the kind and the name, as kubectl takes them.
func (r Ref) String() string { return r.Kind + "/" + r.Name }

func (r Ref) gvk() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// Empty returns an object with nothing but what r says.
func (r Ref) Empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.gvk())
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// Command returns a command of kubectl about an object, such as annotate, with more words behind the object's name.
func (c *Cluster) Command(verb string, r Ref, more ...string) string {
	return c.commands.Line(r.Namespace, append([]string{verb, c.commands.Kind(r.gvk()), r.Name}, more...)...)
}

// Verb returns a command of kubectl trimtab about an object, such as why.
func (c *Cluster) Verb(verb string, r Ref, more ...string) string {
	return c.commands.Line(r.Namespace, append([]string{"trimtab", verb, c.commands.Kind(r.gvk()) + "/" + r.Name}, more...)...)
}

func refOf(u *unstructured.Unstructured) Ref {
	return Ref{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName()}
}

// Unseen says what could not be read, and why.
func (c *Cluster) Unseen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(c.unseen)) {
		all = append(all, what+": "+c.unseen[what])
	}
	return all
}

// missed reports whether something could not be read.
func (c *Cluster) missed(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unseen[what] != ""
}

// miss notes that something could not be read.
func (c *Cluster) miss(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := err.Error()
	if apierrors.IsForbidden(err) {
		why = "forbidden"
	}
	c.unseen[what] = why
}

// get returns an object, nil if there is none, or if it cannot be read, which is noted.
func (c *Cluster) get(ctx context.Context, r Ref) (u *unstructured.Unstructured, exists bool) {
	u = r.Empty()
	err := c.reader.Get(ctx, client.ObjectKeyFromObject(u), u)
	switch {
	case err == nil:
		return u, true
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, false
	}
	c.miss(fmt.Sprintf("%s %s", r.Kind, named(r)), err)
	return nil, true
}

// named returns the name of an object, behind its namespace.
func named(r Ref) string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Objects returns all objects of a kind in a namespace, or in all if that is empty.
func (c *Cluster) Objects(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.reader.List(ctx, list, client.InNamespace(namespace))
	return list.Items, err
}

// owned returns the objects that have an object as an owner: those in its namespace, or in all if it has none.
func (c *Cluster) owned(ctx context.Context, u *unstructured.Unstructured) []metav1.PartialObjectMetadata {
	index, known := c.listed[u.GetNamespace()]
	if !known {
		index = c.index(ctx, u.GetNamespace())
		c.listed[u.GetNamespace()] = index
	}
	return index[u.GetUID()]
}

// index lists the metadata of all that is in a namespace, or in the cluster, by owner.
func (c *Cluster) index(ctx context.Context, namespace string) map[types.UID][]metav1.PartialObjectMetadata {
	var mu sync.Mutex
	all := map[types.UID][]metav1.PartialObjectMetadata{}
	var wg sync.WaitGroup
	tokens := make(chan struct{}, 10)
	for _, kind := range c.kinds() {
		if namespace != "" && !kind.namespaced {
			continue
		}
		wg.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := c.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
				if ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
					c.miss("objects of kind "+kind.Kind, err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, item := range list.Items {
				item.SetGroupVersionKind(kind.GroupVersionKind)
				for _, owner := range item.OwnerReferences {
					all[owner.UID] = append(all[owner.UID], item)
				}
			}
		})
	}
	wg.Wait()
	for _, items := range all {
		slices.SortFunc(items, func(a, b metav1.PartialObjectMetadata) int {
			return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
		})
	}
	return all
}

// kinds returns the kinds whose objects can be listed, each in the version that the API server prefers.
func (c *Cluster) kinds() []served {
	if c.served != nil {
		return c.served
	}
	lists, err := c.server.ServerPreferredResources()
	if failed, is := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); is {
		for gv, why := range failed.Groups {
			c.miss("kinds of "+gv.String(), why)
		}
	} else if err != nil {
		c.miss("the kinds of the API server", err)
	}
	c.served = []served{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if r.Kind != "Event" && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				c.served = append(c.served, served{gv.WithKind(r.Kind), r.Namespaced})
			}
		}
	}
	return c.served
}

// kindOf returns the kind that a word means, whatever its case. If there are several, it is the one of a group.
func (c *Cluster) kindOf(word, group string) (found served, ok bool) {
	for _, kind := range c.kinds() {
		if strings.EqualFold(kind.Kind, word) && (!ok || kind.Group == group) {
			found, ok = kind, true
		}
	}
	return found, ok
}

// warning returns what the newest warning about an object says, and nothing if there is none.
func (c *Cluster) warning(ctx context.Context, u *unstructured.Unstructured) (reason, note string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "EventList"})
	selector := client.MatchingFields{"involvedObject.uid": string(u.GetUID()), "type": "Warning"}
	if err := c.reader.List(ctx, list, client.InNamespace(u.GetNamespace()), selector); err != nil {
		c.miss("events in namespace "+u.GetNamespace(), err)
		return "", ""
	}
	var newest time.Time
	for _, item := range list.Items {
		at := eventTime(item)
		if at.Before(newest) {
			continue
		}
		newest = at
		reason, _, _ = unstructured.NestedString(item.Object, "reason")
		note, _, _ = unstructured.NestedString(item.Object, "message")
	}
	return reason, note
}

// eventTime returns when an event happened last.
func eventTime(event unstructured.Unstructured) time.Time {
	at := event.GetCreationTimestamp().Time
	for _, path := range [][]string{{"lastTimestamp"}, {"series", "lastObservedTime"}, {"eventTime"}} {
		text, _, _ := unstructured.NestedString(event.Object, path...)
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.After(at) {
			at = t
		}
	}
	return at
}
