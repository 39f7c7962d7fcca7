package karpenter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// cloud runs instances: at most one for a NodeClaim, by a client token.
type cloud struct {
	mu        sync.Mutex
	last      int
	instances map[string]instance // by provider ID
}

type instance struct {
	uid, name string
	joined    bool // a kubelet registers its Node only once
}

func (c *cloud) Resources() (all []fault.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, i := range c.instances {
		all = append(all, fault.Resource{Kind: "instance", ID: id, Owner: i.uid, State: "running", Ready: true})
	}
	return all
}

func (c *cloud) Clone() fault.ExternalAPI {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &cloud{last: c.last, instances: maps.Clone(c.instances)}
}

func (c *cloud) launch(i instance) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, o := range c.instances {
		if o.uid == i.uid {
			return id
		}
	}
	c.last++
	id := fmt.Sprint("fake:///i-", c.last)
	c.instances[id] = i
	return id
}

// waiting lists the instances that have not joined the cluster yet.
func (c *cloud) waiting() []*karpenter.NodeClaim {
	return slices.DeleteFunc(c.list(), func(nc *karpenter.NodeClaim) bool { return c.instances[nc.Status.ProviderID].joined })
}

func (c *cloud) join(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.instances[id]
	i.joined = true
	c.instances[id] = i
}

func (c *cloud) terminate(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.instances[id]; !ok {
		return cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("there is no instance %s", id))
	}
	delete(c.instances, id)
	return nil
}

func (c *cloud) list() (all []*karpenter.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(c.instances)) {
		all = append(all, claimOf(id, c.instances[id]))
	}
	return all
}

func capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
}

// claimOf is an instance as Karpenter sees it.
func claimOf(id string, i instance) *karpenter.NodeClaim {
	return &karpenter.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: i.name, CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     karpenter.NodeClaimStatus{ProviderID: id, ImageID: "image", Capacity: capacity(), Allocatable: capacity()},
	}
}

// provider is Karpenter's view of the cloud.
type provider struct{ env *fault.Env }

var _ cloudprovider.CloudProvider = provider{}

func (p provider) Create(ctx context.Context, nc *karpenter.NodeClaim) (*karpenter.NodeClaim, error) {
	return fault.Write(ctx, p.env, "launch instance", func(c *cloud) (*karpenter.NodeClaim, error) {
		i := instance{uid: string(nc.UID), name: nc.Name}
		return claimOf(c.launch(i), i), nil
	})
}

func (p provider) Delete(ctx context.Context, nc *karpenter.NodeClaim) error {
	_, err := fault.Write(ctx, p.env, "terminate instance", func(c *cloud) (struct{}, error) { return struct{}{}, c.terminate(nc.Status.ProviderID) })
	return err
}

func (p provider) Get(ctx context.Context, id string) (*karpenter.NodeClaim, error) {
	return fault.Read(ctx, p.env, "get instance", func(c *cloud) (*karpenter.NodeClaim, error) {
		for _, nc := range c.list() {
			if nc.Status.ProviderID == id {
				return nc, nil
			}
		}
		return nil, cloudprovider.NewNodeClaimNotFoundError(fmt.Errorf("there is no instance %s", id))
	})
}

func (p provider) List(ctx context.Context) ([]*karpenter.NodeClaim, error) {
	return fault.Read(ctx, p.env, "list instances", func(c *cloud) ([]*karpenter.NodeClaim, error) { return c.list(), nil })
}

func (provider) GetInstanceTypes(context.Context, *karpenter.NodePool) ([]*cloudprovider.InstanceType, error) {
	return nil, nil
}

func (provider) IsDrifted(context.Context, *karpenter.NodeClaim) (cloudprovider.DriftReason, error) {
	return "", nil
}
func (provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }
func (provider) Name() string                                 { return "fake" }
func (provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}

// join lets each instance join the cluster as a ready Node.
func join(ctx context.Context, w *fault.World) error {
	c := w.ExternalAPI.(*cloud)
	for _, nc := range c.waiting() {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + nc.Name},
			Spec:       corev1.NodeSpec{ProviderID: nc.Status.ProviderID, Taints: []corev1.Taint{karpenter.UnregisteredNoExecuteTaint}},
			Status: corev1.NodeStatus{
				Capacity: capacity(), Allocatable: capacity(),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
		switch err := w.Client.Create(ctx, n); {
		case apierrors.IsAlreadyExists(err): // that of an instance before has to go first
		case err != nil:
			return err
		default:
			c.join(nc.Status.ProviderID)
		}
	}
	return nil
}

// followInstances removes the taint that each Node has until it is ready, and deletes Nodes without an instance.
func followInstances(ctx context.Context, w *fault.World) error {
	var nodes corev1.NodeList
	if err := w.Client.List(ctx, &nodes); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		runs := slices.ContainsFunc(w.ExternalAPI.(*cloud).list(), func(nc *karpenter.NodeClaim) bool { return nc.Status.ProviderID == n.Spec.ProviderID })
		taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		var err error
		switch before := n.DeepCopy(); {
		case !runs && n.DeletionTimestamp == nil:
			err = w.Client.Delete(ctx, &n)
		case !runs && n.Status.Conditions[0].Status == corev1.ConditionTrue:
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
			err = w.Client.Status().Patch(ctx, &n, client.MergeFrom(before))
		case len(taints) < len(n.Spec.Taints):
			n.Spec.Taints = taints
			err = w.Client.Patch(ctx, &n, client.MergeFrom(before))
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// terminateOrphans terminates instances without a NodeClaim, as providers do: Karpenter leaves that to them.
func terminateOrphans(ctx context.Context, w *fault.World) error {
	var claims karpenter.NodeClaimList
	if err := w.Client.List(ctx, &claims); err != nil {
		return err
	}
	c := w.ExternalAPI.(*cloud)
	for _, r := range c.Resources() {
		if slices.ContainsFunc(claims.Items, func(nc karpenter.NodeClaim) bool { return string(nc.UID) == r.Owner }) {
			continue
		}
		if err := c.terminate(r.ID); err != nil {
			return err
		}
	}
	return nil
}
