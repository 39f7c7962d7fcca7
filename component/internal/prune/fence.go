package prune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/apply"
)

const (
	// lifetime is how long a fence stands at most: nothing is left of it in effect after a crash.
	lifetime = time.Minute
	// refresh is how often API servers read their admission policies.
	refresh = time.Second
	// patience is how long a fence may take to work, and interval how often that is tried.
	patience = 5 * time.Second
	interval = 20 * time.Millisecond
)

// Fence is an admission policy that refuses to create objects of a type.
type Fence struct {
	Client *apply.Client
	// Operator is the name of the operator that puts the fence up.
	Operator string
	// Namespace is where it is tried out, by creating an event that is never stored.
	Namespace string
	// Definition is the CustomResourceDefinition of the type. The fence goes with it at the latest.
	Definition *unstructured.Unstructured
	Type       Type
}

// Up puts the fence up and returns when it works. It reports false if the operator may not put it up.
//
// That it works is proven for the API server that answered. Another one reads the policy within a second,
// which is waited for as well.
func (f Fence) Up(ctx context.Context) (bool, error) {
	if err := f.Down(ctx); err != nil { // one that a crash left has expired
		return false, ignoreForbidden(err)
	}
	for _, m := range []*unstructured.Unstructured{f.policy(time.Now().Add(lifetime)), f.binding()} {
		if _, err := f.Client.Post(ctx, m); err != nil {
			return false, errors.Join(ignoreForbidden(err), f.Down(ctx))
		}
	}
	if err := f.await(ctx); err != nil {
		return false, errors.Join(err, f.Down(ctx))
	}
	return true, pause(ctx, refresh)
}

// Down takes the fence away. It is no error if there is none.
func (f Fence) Down(ctx context.Context) error {
	return errors.Join(f.remove(ctx, "ValidatingAdmissionPolicyBinding"), f.remove(ctx, "ValidatingAdmissionPolicy"))
}

// remove deletes an object of the fence, and no other one that has come under its name.
func (f Fence) remove(ctx context.Context, kind string) error {
	live, err := f.Client.Get(ctx, f.ref(kind))
	if err != nil || !slices.ContainsFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == f.Definition.GetUID() }) {
		return client.IgnoreNotFound(err)
	}
	_, err = f.Client.Delete(ctx, f.ref(kind), live.GetUID(), "")
	if apierrors.IsConflict(err) {
		return nil // another one has taken its place
	}
	return err
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// await tries the fence until it works. If it cannot be tried, it works when all API servers have read it.
func (f Fence) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f.Client.Try(ctx, f.probe())
		switch {
		case f.denied(err):
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the policy that refuses new objects of kind %s has no effect after %s", f.Type.Kind, patience)
		case err != nil:
			return pause(ctx, refresh)
		}
		if err := pause(ctx, interval); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// denied reports whether an answer is that of the fence.
func (f Fence) denied(err error) bool { return refusedWith(err, f.message()) }

// refusedWith reports whether an answer is that of a policy with a message.
func refusedWith(err error, message string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.Status().Details != nil && slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return strings.Contains(c.Message, message)
	})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const admission = "admissionregistration.k8s.io/v1"

func (f Fence) name() string { return f.Operator + "." + string(f.Definition.GetUID()) }

func (f Fence) ref(kind string) apply.Ref {
	return apply.Ref{GroupVersionKind: schema.FromAPIVersionAndKind(admission, kind), NamespacedName: types.NamespacedName{Name: f.name()}}
}

func (f Fence) message() string {
	return fmt.Sprintf("%s is being deleted by %s; objects of kind %s cannot be created", f.Definition.GetName(), f.Operator, f.Type.Kind)
}

// policy refuses to create objects of the type before a time, and the event by which it is tried. That
// event is needed because an object of the type may be invalid for other reasons, which come first.
func (f Fence) policy(until time.Time) *unstructured.Unstructured {
	rule := func(group, plural string) map[string]any {
		return map[string]any{
			"apiGroups": []any{group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{plural},
		}
	}
	return f.object("ValidatingAdmissionPolicy", map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{
			rule(f.Type.Group, f.Type.Plural), rule(eventGroup, "events"),
		}},
		"matchConditions": []any{map[string]any{
			"name":       "fenced",
			"expression": fmt.Sprintf("request.resource.group == %q || request.name == %q", f.Type.Group, f.name()),
		}},
		"validations": []any{map[string]any{
			"expression": fmt.Sprintf("timestamp(object.metadata.creationTimestamp) > timestamp(%q)", until.UTC().Format(time.RFC3339)),
			"message":    f.message(), "reason": "Forbidden",
		}},
	})
}

func (f Fence) binding() *unstructured.Unstructured {
	return f.object("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": f.name(), "validationActions": []any{"Deny"}})
}

func (f Fence) object(kind string, spec map[string]any) *unstructured.Unstructured {
	owner := map[string]any{
		"apiVersion": f.Definition.GetAPIVersion(), "kind": f.Definition.GetKind(),
		"name": f.Definition.GetName(), "uid": string(f.Definition.GetUID()),
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": admission, "kind": kind,
		"metadata": map[string]any{"name": f.name(), "ownerReferences": []any{owner}}, "spec": spec,
	}}
}

const eventGroup = "events.k8s.io"

// probe is an event that every operator may create.
func (f Fence) probe() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": eventGroup + "/v1", "kind": "Event",
		"metadata":            map[string]any{"name": f.name(), "namespace": f.Namespace},
		"eventTime":           time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"reportingController": f.Operator, "reportingInstance": f.Operator, "action": "Delete", "reason": "Fenced", "type": "Normal",
		"regarding": map[string]any{"kind": "Namespace", "name": f.Namespace, "namespace": f.Namespace},
	}}
}
