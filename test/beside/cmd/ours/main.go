// Command ours is the operator of package ours.
package main

import (
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/beside/internal/ours"
)

func main() { operator.Main(ours.Options()) }
