package fault

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shelf is an external API in memory: boxes with an owner and a size.
type shelf struct {
	mu    sync.Mutex
	boxes map[string]box
	last  int
	hides bool // what it has
}

type box struct{ owner, size string }

func newShelf() ExternalAPI { return &shelf{boxes: map[string]box{}} }

func (s *shelf) Resources() (all []Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, b := range s.boxes {
		if s.hides {
			continue
		}
		all = append(all, Resource{Kind: "box", ID: id, Owner: b.owner, State: b.size, Ready: true})
	}
	return all
}

func (s *shelf) Clone() ExternalAPI {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &shelf{boxes: maps.Clone(s.boxes), last: s.last, hides: s.hides}
}

func (s *shelf) find(owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
		if s.boxes[id].owner == owner {
			return id
		}
	}
	return ""
}

func (s *shelf) put(id string, b box) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		s.last++
		id = fmt.Sprint("box-", s.last)
	}
	s.boxes[id] = b
	return id
}

func (s *shelf) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.boxes, id)
}

// toy is an operator that keeps a box for each ConfigMap, with finalizer. Its bugs are
// switched on by name.
type toy struct {
	client.Client
	env *Env
	bug string
	// held are the UIDs of those that bear the finalizer.
	held map[types.NamespacedName]string
	// none are those for which nothing was made yet, as far as a toy knows that forgets in a panic.
	none map[string]bool
}

func toyOperator(bug string) func(ctrl.Manager, *Env) error {
	return func(mgr ctrl.Manager, env *Env) error {
		return ctrl.NewControllerManagedBy(mgr).Named("toy").For(&corev1.ConfigMap{}).
			Complete(&toy{Client: mgr.GetClient(), env: env, bug: bug, held: map[types.NamespacedName]string{}, none: map[string]bool{}})
	}
}

const (
	toyFinalizer  = "toy.dev/box"
	toyAnnotation = "toy.dev/box"
)

func (o *toy) Reconcile(ctx context.Context, req reconcile.Request) (_ reconcile.Result, err error) {
	cm := &corev1.ConfigMap{}
	err = o.Get(ctx, req.NamespacedName, cm)
	if gone := o.held[req.NamespacedName]; client.IgnoreNotFound(err) == nil && gone != "" && gone != string(cm.UID) && o.bug != "trusts its finalizer" {
		if err := o.removeBox(ctx, gone); err != nil { // a delete took it, finalizer and all
			return reconcile.Result{}, err
		}
		delete(o.held, req.NamespacedName)
	}
	if err != nil || cm.Namespace != "default" || cm.Name == "kube-root-ca.crt" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if o.bug == "asks beside the reconcile" {
		go o.env.Author("beside the reconcile")
	}
	owner := string(cm.UID)
	if !cm.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, o.cleanUp(ctx, cm, owner)
	}
	if !controllerutil.ContainsFinalizer(cm, toyFinalizer) {
		if err := o.patch(ctx, cm, func() { controllerutil.AddFinalizer(cm, toyFinalizer) }); err != nil {
			return reconcile.Result{}, err
		}
	}
	o.held[req.NamespacedName] = owner
	id, err := Read(ctx, o.env, "find", func(s *shelf) (string, error) { return s.find(owner), nil })
	if err != nil {
		return reconcile.Result{}, err
	}
	if o.bug == "remembers in the object alone" {
		id = cm.Annotations[toyAnnotation]
	}
	if id == "" || cm.Annotations["toy.dev/size"] != cm.Data["size"] {
		had := id
		if strings.HasPrefix(o.bug, "forgets in a panic") && had == "" {
			o.none[owner] = true
		}
		if id, err = Write(ctx, o.env, "put "+cmp.Or(id, "new"), func(s *shelf) (string, error) {
			return s.put(id, box{owner, cm.Data["size"]}), nil
		}); err != nil {
			if errors.Is(err, ErrNoAnswer) {
				o.env.Author("what tells errors apart")
			}
			if had == "" {
				delete(o.none, owner)
			}
			return reconcile.Result{}, err
		}
		if o.bug == "forgets in a panic over an error" && had == "" {
			delete(o.none, owner)
		}
		o.env.Author("what comes after the answer")
		if had == "" {
			delete(o.none, owner)
		}
		if o.bug == "compensates in a defer" && had == "" {
			defer func() {
				if err != nil {
					_, _ = Write(context.Background(), o.env, "remove "+id, func(s *shelf) (int, error) { s.remove(id); return 0, nil })
				}
			}()
		}
	}
	if cm.Annotations[toyAnnotation] == id && cm.Annotations["toy.dev/size"] == cm.Data["size"] {
		return reconcile.Result{RequeueAfter: 10 * time.Minute}, nil
	}
	err = o.patch(ctx, cm, func() {
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, toyAnnotation, id)
		metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "toy.dev/size", cm.Data["size"])
	})
	return reconcile.Result{RequeueAfter: 10 * time.Minute}, err
}

func (o *toy) cleanUp(ctx context.Context, cm *corev1.ConfigMap, owner string) error {
	if !controllerutil.ContainsFinalizer(cm, toyFinalizer) {
		return nil
	}
	if o.bug == "finalizer first" {
		if err := o.patch(ctx, cm, func() { controllerutil.RemoveFinalizer(cm, toyFinalizer) }); err != nil {
			return err
		}
	}
	if o.none[owner] {
		delete(o.held, client.ObjectKeyFromObject(cm))
		return o.patch(ctx, cm, func() { controllerutil.RemoveFinalizer(cm, toyFinalizer) })
	}
	if err := o.removeBox(ctx, owner); err != nil || o.bug == "finalizer first" {
		return err
	}
	err := o.patch(ctx, cm, func() { controllerutil.RemoveFinalizer(cm, toyFinalizer) })
	if err == nil {
		delete(o.held, client.ObjectKeyFromObject(cm))
	}
	return err
}

func (o *toy) removeBox(ctx context.Context, owner string) error {
	id, err := Read(ctx, o.env, "find", func(s *shelf) (string, error) { return s.find(owner), nil })
	if err != nil || id == "" {
		return err
	}
	_, err = Write(ctx, o.env, "remove "+id, func(s *shelf) (int, error) { s.remove(id); return 0, nil })
	return err
}

// patch changes metadata under the version that was read.
func (o *toy) patch(ctx context.Context, cm *corev1.ConfigMap, change func()) error {
	before := cm.DeepCopy()
	change()
	return o.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// toyLife is the life of one ConfigMap.
func toyLife(bug string) Scenario {
	cm := configMap("a")
	cm.Data = map[string]string{"size": "1"}
	return Scenario{
		Name: "toy", ExternalAPI: newShelf, Operator: Operator{SetUp: toyOperator(bug)},
		Steps: []Step{Create(cm), Merge(cm, `{"data":{"size":"2"}}`), Delete(cm).Gone(cm)},
	}
}
