package dev

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// objects shows the objects of the operator's kinds and their transitions.
type objects struct {
	ctx    context.Context //nolint:containedctx // the informers are started later, and end with it
	end    context.CancelFunc
	client dynamic.Interface
	screen *screen
	runs   sync.WaitGroup

	mu       sync.Mutex
	followed map[schema.GroupVersionResource]bool
	rows     map[string]row
	silent   bool
}

func newObjects(ctx context.Context, c dynamic.Interface, s *screen) *objects {
	ctx, end := context.WithCancel(context.WithoutCancel(ctx)) // objects are deleted after the end of the session's context
	return &objects{ctx: ctx, end: end, client: c, screen: s, followed: map[schema.GroupVersionResource]bool{}, rows: map[string]row{}}
}

// follow shows the objects of definitions from now on.
func (o *objects) follow(definitions []*apiextensionsv1.CustomResourceDefinition) {
	for _, d := range definitions {
		gvr := resource(d)
		o.mu.Lock()
		known := o.followed[gvr]
		o.followed[gvr] = true
		o.mu.Unlock()
		if known {
			continue
		}
		informer := dynamicinformer.NewFilteredDynamicInformer(o.client, gvr, "", 0, nil, nil).Informer()
		// The next attempt is made anyway, and failures are normal: the definition may not be served yet.
		_ = informer.SetWatchErrorHandler(func(*cache.Reflector, error) {})
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(u any) { o.see(u, true) },
			UpdateFunc: func(_, u any) { o.see(u, true) },
			DeleteFunc: func(u any) { o.see(u, false) },
		})
		o.runs.Go(func() { informer.RunWithContext(o.ctx) })
	}
}

// readable is an error unless the objects of a definition can be listed.
func (o *objects) readable(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	_, err := o.client.Resource(resource(d)).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func resource(d *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: d.Spec.Group, Version: storageVersion(d).Name, Resource: d.Spec.Names.Plural}
}

// stop ends everything.
func (o *objects) stop() {
	o.end()
	o.runs.Wait()
}

// quiet removes the table: the session ends. Transitions are still shown.
func (o *objects) quiet() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent = true
	o.screen.clear()
}

// see takes an event of an informer.
func (o *objects) see(event any, exists bool) {
	if last, is := event.(cache.DeletedFinalStateUnknown); is {
		event = last.Obj
	}
	u, is := event.(*unstructured.Unstructured)
	if !is {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := u.GroupVersionKind().GroupKind().String() + " " + u.GetNamespace() + "/" + u.GetName()
	old, known := o.rows[key]
	if !exists {
		delete(o.rows, key)
		o.screen.show(key, nil, transition(name(u), old.state, "gone", ""))
		return
	}
	now := rowOf(u)
	o.rows[key] = now
	line := ""
	switch {
	case !known:
		line = transition(now.name, "(new)", now.state, now.message)
	case old.state != now.state || !now.ready && old.message != now.message:
		line = transition(now.name, old.state, now.state, now.message)
	}
	shown := &now
	if o.silent {
		shown = nil
	}
	o.screen.show(key, shown, line)
}

func transition(name, from, to, message string) string {
	return strings.TrimRight(fmt.Sprintf("      %-20s %s → %s   %s", name, from, to, message), " ") + "\n"
}

// rowOf reads how an object is from its status, if that has the usual form.
func rowOf(u *unstructured.Unstructured) row {
	r := row{name: name(u)}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	reason := ""
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] != "Ready" {
			continue
		}
		r.ready = c["status"] == "True"
		reason, _ = c["reason"].(string)
		r.message, _ = c["message"].(string)
	}
	state, _, _ := unstructured.NestedString(u.Object, "status", "state")
	message, _, _ := unstructured.NestedString(u.Object, "status", "message")
	r.state = cmp.Or(state, reason, "New")
	r.message = strings.Join(strings.Fields(cmp.Or(message, r.message)), " ")
	switch {
	case u.GetDeletionTimestamp() != nil:
		r.ready, r.state = false, "Deleting"
	case r.ready:
		r.state = "Ready"
	}
	return r
}

// storageVersion returns the version in which the API server stores objects.
func storageVersion(d *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Storage {
			return &d.Spec.Versions[i]
		}
	}
	return &apiextensionsv1.CustomResourceDefinitionVersion{}
}
