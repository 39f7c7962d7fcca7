package devcluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	"github.com/trimtab-dev/trimtab/devcluster/internal/pki"
)

// The default classes of a cluster with simulated nodes.
const (
	storageClass = "standard"
	ingressClass = "simulated"
)

// createClasses creates the classes that the simulation serves. Admission gives
// the default ones to claims and Ingresses that name no class.
func (c *Cluster) createClasses(ctx context.Context) error {
	if c.options.nodes() == 0 {
		return nil
	}
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	_, err = clients.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        storageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          provisioner,
		ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode:    new(storagev1.VolumeBindingImmediate),
		AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create StorageClass %q: %w", storageClass, err)
	}
	_, err = clients.NetworkingV1().IngressClasses().Create(ctx, &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        ingressClass,
			Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
		},
		Spec: networkingv1.IngressClassSpec{Controller: ingressController},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create IngressClass %q: %w", ingressClass, err)
	}
	return nil
}

// startSimulation starts the stand-ins for what a cluster with nodes gets from
// its cloud: storage, load balancers, an Ingress controller and a metrics
// server.
func (c *Cluster) startSimulation(ctx context.Context) error {
	if c.options.nodes() == 0 {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigFor(pki.Nodes))
	if err != nil {
		return fmt.Errorf("simulation: %w", err)
	}
	config.UserAgent = "simulation"
	config.QPS = -1
	c.run(ctx, "simulation", func(ctx context.Context) error { return simulate(ctx, config) })
	return nil
}

// simulation is what its parts share.
type simulation struct {
	config    *rest.Config
	clients   kubernetes.Interface
	informers informers.SharedInformerFactory
}

// simulate runs the simulation until ctx is done.
func simulate(ctx context.Context, config *rest.Config) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	s := &simulation{config: config, clients: clients, informers: informers.NewSharedInformerFactory(clients, 0)}
	var runs []func(context.Context)
	for _, part := range []func(context.Context) (func(context.Context), error){
		s.volumes, s.growth, s.loadBalancers, s.ingresses, s.autoscaling,
	} {
		run, err := part(ctx)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	s.informers.StartWithContext(ctx)
	var all sync.WaitGroup
	for _, run := range runs {
		all.Go(func() { run(ctx) })
	}
	all.Wait()
	s.informers.Shutdown()
	return nil
}

// follower calls sync for each object that changes, one at a time, and again
// after an error.
type follower struct {
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	sync     func(context.Context, cache.ObjectName) error
}

func follow(informer cache.SharedIndexInformer, sync func(context.Context, cache.ObjectName) error) (*follower, error) {
	f := &follower{
		informer: informer,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		sync:     sync,
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.enqueue,
		UpdateFunc: func(_, o any) { f.enqueue(o) },
	})
	return f, err
}

func (f *follower) enqueue(o any) {
	if name, err := cache.ObjectToName(o); err == nil { // an informer holds only objects
		f.queue.Add(name)
	}
}

func (f *follower) run(ctx context.Context) {
	defer context.AfterFunc(ctx, f.queue.ShutDown)()
	if !cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
		return
	}
	for {
		name, ended := f.queue.Get()
		if ended {
			return
		}
		err := f.sync(ctx, name)
		switch {
		case err == nil || apierrors.IsNotFound(err):
			f.queue.Forget(name)
		default:
			if !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled) {
				utilruntime.HandleErrorWithContext(ctx, err, "Simulation failed and is tried again", "object", name)
			}
			f.queue.AddRateLimited(name)
		}
		f.queue.Done(name)
	}
}
