// Command postgres-operator manages databases, roles and grants of PostgreSQL servers as Kubernetes objects.
package main

import (
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/postgres"
)

func main() { operator.Main(postgres.Operator()) }
