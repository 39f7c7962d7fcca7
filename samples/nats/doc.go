// Package nats is an operator for NATS JetStream: streams, consumers and key-value buckets
// as objects of Kubernetes.
//
// [Streams], [Consumers] and [KeyValues] are the drivers: what each kind means in terms of
// the JetStream API. [Client] speaks that API, [Operator] puts the parts together for
// cmd/nats-operator. All else (finalizers, status, retries, drift, crashes) is trimtab's.
//
// The kinds themselves are in api/v1alpha1.
package nats
