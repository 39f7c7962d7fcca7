package corpus

import (
	"context"
	"crypto/rand"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Passwords re-creates crossplane-contrib/provider-azure#230. While a server is being created, the vendor says that there is none. An
// operator that asks in this time creates it again, with another random password. The vendor ignores that, because
// the server exists, and the Secret with the connection gets a password that the server does not know.
//
// Fixed, as by #284 but for a crash between the two writes, too, the password is in the Secret before the server is
// created, and each further try takes it from there.
type Passwords struct {
	kit

	Env   *fault.Env
	Fixed bool
}

// SetupPasswords sets up a Passwords: Items are servers, and of each there is a Secret of its name.
func SetupPasswords(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		r := &Passwords{kit{mgr.GetClient()}, env, fixed}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Complete(r)
	}
}

// Server is a database server.
type Server struct {
	Password string
	// Known is from when the vendor shows it.
	Known time.Time
}

// Servers is a vendor of servers, in memory, by the names of their owners.
type Servers struct {
	mu  sync.Mutex
	all map[string]Server
}

// NewServers returns a vendor without servers.
func NewServers() fault.ExternalAPI { return &Servers{all: map[string]Server{}} }

var _ fault.Cloner = (*Servers)(nil)

// Resources implements fault.ExternalAPI.
func (s *Servers) Resources() (all []fault.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, server := range s.all {
		all = append(all, fault.Resource{Kind: "server", ID: "of " + name, Owner: name, State: "password " + server.Password, Ready: true})
	}
	return all
}

// Clone implements fault.Cloner.
func (s *Servers) Clone() fault.ExternalAPI {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Servers{all: maps.Clone(s.all)}
}

// creating is how long it takes until the vendor shows a server.
const creating = time.Minute

// put makes a server, unless there is one.
func (s *Servers) put(name, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.all[name]; !exists {
		s.all[name] = Server{password, time.Now().Add(creating)}
	}
}

func (s *Servers) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	server, exists := s.all[name]
	return exists && !time.Now().Before(server.Known)
}

func (s *Servers) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

// Reconcile implements reconcile.Reconciler.
func (r *Passwords) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	err := r.Get(ctx, req.NamespacedName, item)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, r.remove(ctx, req.NamespacedName)
	case err != nil:
		return ctrl.Result{}, err
	case !item.DeletionTimestamp.IsZero():
		if err := r.remove(ctx, req.NamespacedName); err != nil || !controllerutil.RemoveFinalizer(item, finalizer) {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, item))
	}
	if controllerutil.AddFinalizer(item, finalizer) {
		return ctrl.Result{}, r.Update(ctx, item)
	}
	exists, err := fault.Read(ctx, r.Env, "get server", func(s *Servers) (bool, error) { return s.has(req.String()), nil })
	if err != nil {
		return ctrl.Result{}, err
	}
	if exists {
		return ctrl.Result{}, r.report(ctx, item)
	}
	return ctrl.Result{RequeueAfter: 2 * creating}, r.make(ctx, item, req.String())
}

// make creates the server and writes the Secret.
func (r *Passwords) make(ctx context.Context, item *Item, name string) error {
	password := rand.Text()
	if r.Fixed {
		var err error
		if password, err = r.publish(ctx, item, password); err != nil {
			return err
		}
	}
	_, err := fault.Write(ctx, r.Env, "create server", func(s *Servers) (any, error) {
		s.put(name, password)
		return nil, nil
	})
	if err == nil && !r.Fixed {
		_, err = r.publish(ctx, item, password)
	}
	return err
}

// publish writes the Secret and returns the password in it. Fixed, it keeps one that is there.
func (r *Passwords) publish(ctx context.Context, item *Item, password string) (string, error) {
	s := &corev1.Secret{}
	err := r.Get(ctx, client.ObjectKeyFromObject(item), s)
	switch {
	case apierrors.IsNotFound(err):
		s.ObjectMeta = metav1.ObjectMeta{Name: item.Name, Namespace: item.Namespace}
		s.Data = map[string][]byte{"password": []byte(password)}
		if err := controllerutil.SetControllerReference(item, s, r.Scheme()); err != nil {
			return "", err
		}
		return password, r.Create(ctx, s)
	case err != nil:
		return "", err
	case !metav1.IsControlledBy(s, item): // it goes with an earlier item
		return "", apierrors.NewConflict(corev1.Resource("secrets"), s.Name, nil)
	case r.Fixed:
		return string(s.Data["password"]), nil
	}
	s.Data["password"] = []byte(password)
	return password, r.Update(ctx, s)
}

// remove removes the server that may have been created for an object.
func (r *Passwords) remove(ctx context.Context, key types.NamespacedName) error {
	_, err := fault.Write(ctx, r.Env, "delete server", func(s *Servers) (any, error) {
		s.remove(key.String())
		return nil, nil
	})
	return err
}
