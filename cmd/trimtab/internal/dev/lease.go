package dev

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// behind says who leads instead of the session's operator, and what to do about it.
func (s *session) behind(ctx context.Context, lease string) string {
	namespace, name, _ := strings.Cut(lease, "/")
	return fmt.Sprintf("It stands by, and works on nothing: %s holds the lease %s. It takes over when that one ends, or\n"+
		"has not renewed the lease for 15 s. If it is a Deployment of the cluster, this ends it:\n  %s",
		s.holder(ctx, namespace, name), lease, s.options.Kubectl.Line(namespace, "scale", "deployment", name, "--replicas=0"))
}

// holder is who holds a lease, for people.
func (s *session) holder(ctx context.Context, namespace, name string) string {
	l := &unstructured.Unstructured{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, l); err != nil {
		return "another one"
	}
	identity, _, _ := unstructured.NestedString(l.Object, "spec", "holderIdentity")
	text, _, _ := unstructured.NestedString(l.Object, "spec", "renewTime")
	if at := strings.LastIndexByte(identity, '_'); at > 0 { // controller-runtime puts a UID behind the name of the host
		identity = identity[:at]
	}
	if identity == "" {
		return "another one"
	}
	if renewed, err := time.Parse(time.RFC3339Nano, text); err == nil {
		identity += fmt.Sprintf(" (which renewed it %s ago)", time.Since(renewed).Truncate(time.Second))
	}
	return identity
}
