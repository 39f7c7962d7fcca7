// Command nats-operator manages streams, consumers and key-value buckets of NATS JetStream as Kubernetes
// objects.
package main

import (
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
)

func main() { operator.Main(nats.Operator()) }
