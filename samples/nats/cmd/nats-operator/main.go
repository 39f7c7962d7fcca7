// Command nats-operator keeps streams, consumers and key-value buckets of NATS JetStream
// as objects of Kubernetes ask for them.
package main

import (
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
)

func main() { operator.Main(nats.Operator()) }
