package componenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// run is one run of a story, in its own namespace.
type run[T component.Object] struct {
	Sweep[T]
	t         *testing.T
	ctx       context.Context //nolint:containedctx // a run is one test; its context outlives that of the test by the cleanups
	admin     client.WithWatch
	namespace string
	name      string
	owner     string // the value of the owner label

	// beside is the run of another component in the same namespace and of the same operator; nil if there
	// is none.
	beside *run[T]

	mu sync.Mutex
	// kinds are those of the dependents so far.
	kinds map[schema.GroupVersionKind]bool
	// uids are those of the dependents at the last stage, and killed those when the operator was killed
	// after that.
	uids, killed map[string]types.UID
}

// begin finds out who the owner of the dependents will be.
func (r *run[T]) begin() {
	r.t.Helper()
	r.name = r.Versions[0].GetName()
	system := &corev1.Namespace{}
	if err := r.admin.Get(r.ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		r.t.Fatal(err)
	}
	r.owner = desired.OwnerLabel(string(system.UID) + "/" + r.namespace + "/" + r.name)
	r.kinds = map[schema.GroupVersionKind]bool{}
	for _, kind := range r.Options.Kinds {
		r.kinds[kind] = true
	}
}

// start runs the operator as a new process would be until stop is called.
func (r *run[T]) start(l *line) (stop func(), err error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := r.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := manager.New(l.through(r.Config), manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{r.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	options := r.Options
	if options.HandoverGrace == 0 {
		options.HandoverGrace = -1
	}
	if r.Drivers != nil {
		options.Drivers = r.Drivers(&Process{Namespace: r.namespace, line: l})
	}
	if err := component.New(Fixed(r.Renderer), options).SetupWithManager(mgr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil && !l.isDead() {
			r.t.Errorf("the operator ended: %v", err)
		}
	}, nil
}

// component is an empty component with the name of the run's.
func (r *run[T]) component() T {
	c, _ := r.Versions[0].DeepCopyObject().(T)
	c.SetNamespace(r.namespace)
	return c
}

// bring creates or updates the component and waits until it is ready.
func (r *run[T]) bring(i int, version T) {
	r.t.Helper()
	ctx := r.ctx
	if i == 0 {
		if err := r.admin.Create(ctx, r.component()); err != nil {
			r.t.Fatal(err)
		}
		r.ready(i)
		return
	}
	r.update(version)
	r.ready(i)
}

// update gives the component another version.
func (r *run[T]) update(version T) {
	r.t.Helper()
	ctx := r.ctx
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live := r.component()
		if err := r.admin.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}
		next, _ := version.DeepCopyObject().(T)
		next.SetNamespace(r.namespace)
		next.SetName(r.name)
		next.SetUID(live.GetUID())
		next.SetResourceVersion(live.GetResourceVersion())
		next.SetFinalizers(live.GetFinalizers())
		return r.admin.Update(ctx, next)
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// ready waits until the component is ready as its newest version asks.
func (r *run[T]) ready(i int) {
	r.t.Helper()
	testenv.Wait(r.t, r.admin, r.component(), fmt.Sprintf("version %d to be ready", i+1), func(c T) bool {
		s := c.GetStatus()
		return s.State == component.StateReady && s.AppliedGeneration == c.GetGeneration() && meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady)
	})
	listed, live := r.check(fmt.Sprintf("when version %d was ready", i+1))
	for key, recorded := range listed {
		if recorded && live[key] == nil {
			r.t.Errorf("%s is in the inventory when version %d is ready, and does not exist", key, i+1)
		}
	}
	r.tidy()
}

// remove deletes the component and waits until it is gone.
func (r *run[T]) remove() {
	r.t.Helper()
	if err := r.admin.Delete(r.ctx, r.component()); err != nil {
		r.t.Fatal(err)
	}
	testenv.Gone(r.t, r.admin, r.component(), "deleted")
}

// end checks that nothing is left.
func (r *run[T]) end() {
	r.t.Helper()
	live, err := r.live()
	if err != nil {
		r.t.Fatal(err)
	}
	for key := range live {
		r.t.Errorf("%s was leaked: its component is gone", key)
	}
	var left []string
	none := poll.Until(func() bool {
		list := &corev1.ConfigMapList{}
		if err := r.admin.List(r.ctx, list, client.InNamespace(r.namespace), client.HasLabels{r.Options.Name + "/inventory-of"}); err != nil {
			r.t.Error(err)
			return true
		}
		left = nil
		for i := range list.Items {
			left = append(left, list.Items[i].Name)
		}
		return len(left) == 0
	})
	if !none {
		r.t.Errorf("ConfigMaps %q with the inventory were leaked: their component is gone", left)
	}
}

// check compares the live objects of the component with its inventory. The objects are listed first: what
// is created later was recorded before. The inventory says of each key whether it is that of an object.
func (r *run[T]) check(when string) (inventory map[string]bool, live map[string]*unstructured.Unstructured) {
	if _, err := r.inventory(); err != nil { // for the kinds
		r.t.Errorf("read the inventory %s: %v", when, err)
	}
	live, err := r.live()
	if err != nil {
		r.t.Errorf("list the dependents %s: %v", when, err)
	}
	inventory, err = r.inventory()
	if err != nil {
		r.t.Errorf("read the inventory %s: %v", when, err)
		return inventory, live
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, found := inventory[key]; !found {
			r.t.Errorf("%s exists %s, and is not in the inventory", key, when)
		}
	}
	return inventory, live
}

// inventory returns the keys of the inventory, and which of them must exist, and notes its kinds.
func (r *run[T]) inventory() (map[string]bool, error) {
	c := r.component()
	err := r.admin.Get(r.ctx, client.ObjectKeyFromObject(c), c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return map[string]bool{}, err
	}
	items, err := c.GetStatus().Items(r.shard)
	if apierrors.IsNotFound(err) { // the inventory has changed meanwhile
		return r.inventory()
	}
	keys := map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range items {
		ended := item.Phase == api.PhaseCompleting || item.Phase == api.PhaseCompleted
		if keys[item.Key()] = len(item.Record) == 0 && !ended; len(item.Record) > 0 {
			continue
		}
		r.kinds[schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind}] = true
	}
	return keys, err
}

// shard returns a part of an inventory.
func (r *run[T]) shard(name string) ([]byte, error) {
	m := &corev1.ConfigMap{}
	err := r.admin.Get(r.ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, m)
	return m.BinaryData[api.InventoryKey], err
}

// tidy waits until there are no parts of inventories but those that the component refers to.
func (r *run[T]) tidy() {
	r.t.Helper()
	var found, want []string
	same := poll.Until(func() bool {
		c, list := r.component(), &corev1.ConfigMapList{}
		err := r.admin.Get(r.ctx, client.ObjectKeyFromObject(c), c)
		if err == nil {
			err = r.admin.List(r.ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{r.Options.Name + "/inventory-of": string(c.GetUID())})
		}
		if err != nil {
			r.t.Error(err)
			return true
		}
		found, want = nil, slices.Sorted(slices.Values(c.GetStatus().InventoryShards))
		for i := range list.Items {
			found = append(found, list.Items[i].Name)
		}
		slices.Sort(found)
		return slices.Equal(found, want)
	})
	if !same {
		r.t.Errorf("the inventory is in ConfigMaps %q, and there are %q", want, found)
	}
}

// live returns the objects that carry the component's label, by key.
func (r *run[T]) live() (map[string]*unstructured.Unstructured, error) {
	r.mu.Lock()
	kinds := slices.Collect(maps.Keys(r.kinds))
	r.mu.Unlock()
	live := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := r.admin.List(r.ctx, list, client.MatchingLabels{desired.OwnerKey(r.Options.Name): r.owner})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			o := &list.Items[i]
			live[kind.Group+"/"+kind.Kind+"/"+o.GetNamespace()+"/"+o.GetName()] = o
		}
	}
	return live, nil
}

// stage is the dependents at the end of a version: their contents, and whether they are the same objects as
// at the end of the version before.
type stage map[string]kept

type kept struct {
	// Same: it is the object of the stage before. Again: it was new when the operator was killed, and
	// is another one now.
	Same, Again bool
	Content     string
}

// stage returns the present stage.
func (r *run[T]) stage() stage {
	r.t.Helper()
	live, err := r.live()
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := stage{}
	for key, o := range live {
		before, killed, now := r.uids[key], r.killed[key], o.GetUID()
		out[strings.ReplaceAll(key, r.namespace, "NAMESPACE")] = kept{
			Same: before == now, Again: killed != "" && killed != before && killed != now, Content: r.content(o),
		}
	}
	for name, content := range r.external() {
		out["external resource "+strings.ReplaceAll(name, r.namespace, "NAMESPACE")] = kept{Content: strings.ReplaceAll(content, r.namespace, "NAMESPACE")}
	}
	r.uids, r.killed = uidsOf(live), nil
	return out
}

// external returns the external resources of the run.
func (r *run[T]) external() map[string]string {
	if r.External == nil {
		return nil
	}
	return r.External(r.namespace)
}

// die notes what there is when the operator was killed.
func (r *run[T]) die() {
	_, live := r.check("when it was killed")
	if r.beside != nil {
		r.beside.check("when it was killed")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = uidsOf(live)
}

func uidsOf(live map[string]*unstructured.Unstructured) map[string]types.UID {
	uids := make(map[string]types.UID, len(live))
	for key, o := range live {
		if o.GetDeletionTimestamp() == nil {
			uids[key] = o.GetUID()
		}
	}
	return uids
}

// content is an object without what the API server and controllers put in.
func (r *run[T]) content(o *unstructured.Unstructured) string {
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	for _, own := range []string{desired.OwnerKey(r.Options.Name), desired.DigestKey(r.Options.Name)} { // they hold the namespace
		delete(labels, own)
		delete(annotations, own)
	}
	object := maps.Clone(o.Object)
	delete(object, "status")
	object["metadata"] = map[string]any{"labels": labels, "annotations": annotations, "terminating": o.GetDeletionTimestamp() != nil}
	without(object, "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort", "volumeName", "uid", "deployment.kubernetes.io/revision",
		"controller-uid", "batch.kubernetes.io/controller-uid")
	data, err := json.Marshal(object)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), r.namespace, "NAMESPACE")
}

// without removes fields from all maps in a value.
func without(value any, fields ...string) {
	switch v := value.(type) {
	case map[string]any:
		for _, f := range fields {
			delete(v, f)
		}
		for _, inner := range v {
			without(inner, fields...)
		}
	case []any:
		for _, inner := range v {
			without(inner, fields...)
		}
	}
}
