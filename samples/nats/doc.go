// Package nats is an operator for NATS JetStream. It manages streams, consumers and key-value buckets as
// Kubernetes objects.
//
// [Streams], [Consumers] and [KeyValues] are the drivers of the kinds in api/v1alpha1. [Client] is a
// client of the JetStream API. [Operator] combines them for cmd/nats-operator. trimtab provides
// everything else: finalizers, status, retries, drift detection and crash recovery.
package nats
